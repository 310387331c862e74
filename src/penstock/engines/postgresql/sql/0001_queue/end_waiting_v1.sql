-- Part of cancel and upkeep: end those of the given messages that no lease holds. The caller owns
-- their channels. Answers the ids that ended.
create or replace function "penstock".end_waiting_v1(p_ids bigint[], p_outcome text, p_now timestamptz)
returns bigint[]
language plpgsql
set search_path = "penstock", pg_temp
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
begin
    with done as (
        delete from message m
        where m.id = any(p_ids) and not exists (select from lease l where l.message_id = m.id offset 0)
        returning m.id, m.channel_id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size
    ),
    told as (
        insert into history (message_id, attempt, first_published_at, published_at, due, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, outcome)
        select d.id, d.attempt, d.first_published_at, d.published_at, d.due, p_now,
            d.payload_size, true, false, d.priority, d.queue, d.channel, d.kind, p_outcome
        from done d, setting s where s.history = 'all'
    ),
    -- One message fewer, from just after the moment at which its own wake counts it.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel)
        select case when d.due > p_now then d.due + interval '1 microsecond' else p_now end,
            d.channel_id, d.due, d.id, -1, d.priority, d.queue, d.channel from done d
    )
    select coalesce(array_agg(d.id), '{}'),
        array_agg(d.id) filter (where d.key is not null), array_agg(d.queue) filter (where d.key is not null),
        array_agg(d.key) filter (where d.key is not null), array_agg(d.key_window) filter (where d.key is not null),
        array_agg(d.queue), array_agg(d.channel), array_agg(d.kind)
    into v_ids, v_keyed, v_key_queues, v_keys, v_windows, v_queues, v_channels, v_kinds
    from done d;
    perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, p_now);
    if exists (select from listener l where l.until > p_now) then
        perform post_v1(array_fill(p_outcome, array[cardinality(v_ids)]), v_ids, v_queues, v_channels, v_kinds, p_now);
    end if;
    return v_ids;
end
$$;
