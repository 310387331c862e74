-- Part of claim: visit channels of any policy (claim_visit_v1), and answer the messages.
--
-- Keeps: a visit knows every wake that may have to start before those that were read, however many lie
-- between (a higher priority, a message that was put back). The rows are read by their addresses: they
-- are leased to us and the channels are ours, so they stay where the visit saw them.
--
-- p_unread: there are more wakes than those in p_wakes, from p_wake_from on. p_listeners: somebody listens
-- to events. The other parameters are those of claim_visit_v1.
create or replace function "laneway".claim_serve_v1(
    p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_unread boolean,
    p_wake_from timestamptz, p_rounds double precision, p_limit integer, p_lease interval, p_worker text,
    p_quantum integer, p_listeners boolean, p_now timestamptz
) returns setof "laneway".claimed_v1
language plpgsql
as $$
declare
    v_wakes tid[] := p_wakes;
    v_fence bigint;
    v_ids bigint[];
    v_tids tid[];
begin
    if p_unread then
        v_wakes := v_wakes || array(
            select w.tid from unnest(p_owned) o cross join lateral (
                select k.ctid as tid from wake k
                where k.channel_id = o and (k.priority > 0 or k.due < k.at) and k.at >= p_wake_from and k.at <= p_now
                offset 0) w);
    end if;
    select s.fence, s.ids, s.tids into v_fence, v_ids, v_tids
    from claim_visit_v1(
        p_channels, p_last, p_owned, p_rows, v_wakes, p_limit, p_lease, p_worker, p_quantum, p_rounds, p_now) s;
    return query
    select m.id, v_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        date_part('epoch', m.due), date_part('epoch', m.published_at),
        date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
        m.key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean
    from unnest(v_tids) x(tid)
    cross join lateral (select k.* from message k where k.ctid = x.tid offset 0) m;
    if p_listeners and v_ids is not null then
        perform add_events_v1(array['claimed'], v_ids, p_now);
    end if;
end
$$;
