-- messages: a page of what has not ended, by id, without payloads; dead letters if asked for.
--
-- Keeps: a page costs what is read until it is full. Ids are found first, by an index whatever the
-- statistics say: leased ones from the leases, dead ones from the dead letters, the others along
-- the ids, or in their channel's index if both names are given. Locks nothing.
create or replace function "penstock".messages_v1(
    p_queue text default null, p_channel text default null, p_kind text default null, p_state text default null,
    p_after bigint default 0, p_limit integer default 100, p_now timestamptz default null
) returns table (
    id bigint, queue text, channel text, kind text, key text, state text, priority smallint, due timestamptz,
    published_at timestamptz, first_published_at timestamptz, expires_at timestamptz, attempt bigint, max_attempts integer,
    content_type text, headers jsonb, payload_size bigint, fence bigint, worker text, claimed_at timestamptz, until timestamptz,
    died_at timestamptz, reason text, error_type text, error text
)
language plpgsql stable
set search_path = "penstock", pg_temp
set jit = off
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_lane uuid := channel_id_v1(p_queue, p_channel);
    v_ids bigint[];
begin
    if p_state = 'dead' then
        return query
        select d.id, d.queue, d.channel, d.kind, d.key, 'dead', d.priority, null::timestamptz,
            d.published_at, d.first_published_at, null::timestamptz, d.attempt, d.max_attempts,
            d.content_type, d.headers, octet_length(d.payload)::bigint, null::bigint, null::text,
            null::timestamptz, null::timestamptz, d.died_at, d.reason, d.error_type, d.error
        from dead d
        where d.id > p_after and (p_queue is null or d.queue = p_queue)
            and (p_channel is null or d.channel = p_channel) and (p_kind is null or d.kind = p_kind)
        order by d.id limit p_limit;
        return;
    end if;

    if p_state = 'leased' then
        v_ids := array(
            select l.message_id from lease l
            cross join lateral (select k.queue, k.channel, k.kind from message k where k.id = l.message_id offset 0) m
            where l.message_id > p_after and (p_queue is null or m.queue = p_queue)
                and (p_channel is null or m.channel = p_channel) and (p_kind is null or m.kind = p_kind)
            order by l.message_id limit p_limit);
    else
        v_ids := array(
            select m.id from message m
            where m.id > p_after and (v_lane is null or m.channel_id = v_lane)
                and (p_queue is null or m.queue = p_queue) and (p_channel is null or m.channel = p_channel)
                and (p_kind is null or m.kind = p_kind)
                and (p_state is null
                    or (m.due > v_now) = (p_state = 'scheduled')
                        and not exists (select from lease l where l.message_id = m.id offset 0))
            order by m.id limit p_limit);
    end if;

    return query
    select m.id, m.queue, m.channel, m.kind, m.key,
        case when l.fence is not null then 'leased' when m.due > v_now then 'scheduled' else 'waiting' end,
        m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
        case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts,
        m.content_type, m.headers, octet_length(m.payload)::bigint, l.fence, l.worker, l.claimed_at, l.until,
        null::timestamptz, null::text, null::text, null::text
    from message m left join lease l on l.message_id = m.id
    where m.id = any(v_ids)
    order by m.id;
end
$$;
