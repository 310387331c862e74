-- Part of cancel and upkeep: end those of the given messages that are not leased. The caller has locked
-- their channels. Answers the ids that ended. Locks keys in order, then messages.
create or replace function "laneway".end_waiting_v1(p_ids bigint[], p_outcome text, p_now timestamptz)
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    v_ids bigint[];
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
    v_keeps interval[];
    v_nodes bigint[];
begin
    perform lock_keys_v1(p_ids, true);
    with done as (
        delete from message m
        where m.id = any(p_ids) and not exists (select from lease l where l.message_id = m.id offset 0)
        returning m.id, m.channel_id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due, m.by_kind,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size,
            keep_result_v1(m.headers) as keep, m.flow_id
    ),
    recorded as (
        insert into history (message_id, attempt, first_published_at, published_at, due, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, outcome)
        select d.id, d.attempt, d.first_published_at, d.published_at, d.due, p_now,
            d.payload_size, true, false, d.priority, d.queue, d.channel, d.kind, p_outcome
        from done d, setting s where s.history = 'all'
    ),
    -- One message fewer, from just after the moment at which its own wake counts it.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select case when d.due > p_now then d.due + interval '1 microsecond' else p_now end,
            d.channel_id, d.due, d.id, -1, d.priority, d.queue, d.channel,
            case when d.by_kind then '=' || d.kind when d.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from done d
        union all
        -- One at a time: the next may be of another kind now.
        select p_now, d.channel_id, p_now, 0, 0, 0, d.queue, d.channel, '-'
        from (select distinct d.channel_id, d.queue, d.channel from done d where d.by_kind) d
        where exists (select from channel c where c.id = d.channel_id and c.concurrency = 1 offset 0)
    )
    select coalesce(array_agg(d.id), '{}'),
        array_agg(d.id) filter (where d.key is not null), array_agg(d.queue) filter (where d.key is not null),
        array_agg(d.key) filter (where d.key is not null), array_agg(d.key_window) filter (where d.key is not null),
        array_agg(d.queue), array_agg(d.channel), array_agg(d.kind), array_agg(d.keep), array_agg(d.id) filter (where d.flow_id is not null)
    into v_ids, v_keyed, v_key_queues, v_keys, v_windows, v_queues, v_channels, v_kinds, v_keeps, v_nodes
    from done d;
    perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, p_now);
    perform keep_ended_v1(array_agg(x.id), array_agg(x.queue), array_agg(x.channel), array_agg(x.kind), array_agg(x.keep),
        p_outcome, '{}', '{}', '{}', p_now)
    from unnest(v_ids, v_queues, v_channels, v_kinds, v_keeps) x(id, queue, channel, kind, keep) where x.keep is not null;
    if exists (select from listener l where l.until > p_now) then
        perform deliver_events_v1(array_fill(p_outcome, array[cardinality(v_ids)]), v_ids, v_queues, v_channels, v_kinds, p_now);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, p_outcome, p_now);
    end if;
    return v_ids;
end
$$;
