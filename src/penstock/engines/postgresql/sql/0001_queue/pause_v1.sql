-- pause, resume: no claim from these channels until they are resumed; publishing goes on.
-- Locks channel rows in id order.
create or replace function "penstock".pause_v1(
    p_queue text, p_channels text[], p_paused boolean, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
begin
    perform own_v1(array_fill(p_queue, array[cardinality(p_channels)]), p_channels);
    update channel c set paused = p_paused
    where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel)
    select v_now, c.id, v_now, 0, 0, 0, c.queue, c.name
    from channel c where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    perform ring_v1(array[p_queue], v_now);
end
$$;
