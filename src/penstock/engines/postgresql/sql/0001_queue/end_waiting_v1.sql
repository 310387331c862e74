-- Part of cancel and upkeep: end those of the given messages that no lease holds. The caller owns
-- their channels. Answers the ids that ended.
create or replace function "penstock".end_waiting_v1(p_ids bigint[], p_outcome text, p_now timestamptz)
returns bigint[]
language sql
set search_path = "penstock", pg_temp
as $$
    with done as (
        delete from message m
        where m.id = any(p_ids) and not exists (select from lease l where l.message_id = m.id)
        returning m.*
    ),
    told as (
        insert into history (message_id, attempt, first_published_at, published_at, due, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, outcome)
        select d.id, d.attempt, d.first_published_at, d.published_at, d.due, p_now,
            octet_length(d.payload), true, false, d.priority, d.queue, d.channel, d.kind, p_outcome
        from done d, setting s where s.history = 'all'
    ),
    -- One message fewer, from the moment at which its own wake counted it.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel)
        select greatest(d.due, p_now), d.channel_id, d.due, d.id, -count(*), d.priority, d.queue, d.channel
        from done d group by greatest(d.due, p_now), d.channel_id, d.due, d.id, d.priority, d.queue, d.channel
    ),
    unkeyed as (
        delete from dedupe k using done d
        where d.key is not null and d.key_window is null and k.queue = d.queue and k.key = d.key and k.message_id = d.id
    ),
    aging as (
        update dedupe k set expires_at = p_now + d.key_window from done d
        where d.key is not null and d.key_window is not null
            and k.queue = d.queue and k.key = d.key and k.message_id = d.id
    )
    select coalesce(array_agg(d.id), '{}') from done d
$$;
