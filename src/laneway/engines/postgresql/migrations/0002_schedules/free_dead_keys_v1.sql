-- Part of firing a schedule: take these keys from the dead letters that hold them, so that the next message
-- of the schedule can have them. Answers which were taken.
--
-- Keeps: a key belongs to one message. The letter's row is locked first, so that it is not redriven meanwhile;
-- one that is being redriven or discarded is left alone.
create or replace function "laneway".free_dead_keys_v1(p_queues text[], p_keys text[])
returns table (queue text, key text)
language sql
set search_path = "laneway", pg_temp
as $$
    with held as materialized (
        select x.id, d.queue, d.key
        from unnest(p_queues, p_keys) k(queue, key)
        join dedupe d on d.queue = k.queue and d.key = k.key
        join dead x on x.id = d.message_id
        for update of x skip locked
    ), freed as (
        delete from dedupe d using held h
        where d.queue = h.queue and d.key = h.key and d.message_id = h.id
    )
    update dead x set key = null, key_window = null
    from held h where x.id = h.id
    returning h.queue, h.key
$$;
