-- Part of claim: what claim_serve_v1 does, in queues that are claimed by kind (claim_visit_kinds_v1).
--
-- p_lanes: the lanes that the claim takes from, and '-'; null: all. p_move: there may be messages that are not
-- found by their kinds yet.
create or replace function "laneway".claim_serve_kinds_v1(
    p_lanes text[], p_move boolean, p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_unread boolean,
    p_wake_from timestamptz, p_rounds double precision, p_limit integer, p_lease interval, p_worker text,
    p_quantum integer, p_listeners boolean, p_now timestamptz
) returns setof "laneway".claimed_v1
language plpgsql
as $$
declare
    v_wakes tid[] := p_wakes;
    v_fence bigint;
    v_rows "laneway".message[];
begin
    if p_unread then
        v_wakes := v_wakes || array(
            select w.tid from unnest(p_owned) o cross join lateral (
                select k.ctid as tid from wake k
                where k.channel_id = o and (k.priority > 0 or k.due < k.at) and k.at >= p_wake_from and k.at <= p_now
                    and (p_lanes is null or k.lane = any(p_lanes))
                offset 0) w);
    end if;
    select s.fence, s.rows into v_fence, v_rows
    from claim_visit_kinds_v1(
        p_lanes, p_move or p_unread, p_channels, p_last, p_owned, p_rows, v_wakes, p_limit, p_lease, p_worker, p_quantum, p_rounds, p_now) s;
    return query
    select m.id, v_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        date_part('epoch', m.due), date_part('epoch', m.published_at),
        date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
        m.key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean
    from unnest(v_rows) m;
    if p_listeners and v_rows is not null then
        perform add_events_v1(array['claimed'], array(select m.id from unnest(v_rows) m), p_now);
    end if;
end
$$;
