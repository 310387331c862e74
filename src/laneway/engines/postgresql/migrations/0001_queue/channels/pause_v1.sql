-- pause, resume: nothing is claimed from paused channels, for p_length if there is one; publishing goes on.
-- A pause for a time leaves a wake for its end, at which the next claim visits the channel.
-- Locks channel rows in id order.
create or replace function "laneway".pause_v1(
    p_queue text, p_channels text[], p_paused boolean, p_length interval default null, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
begin
    perform lock_channels_v1(array_fill(p_queue, array[cardinality(p_channels)]), p_channels);
    update channel c set paused = p_paused, paused_until = case when p_paused then v_now + p_length end, throttled = false
    where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select e.at, c.id, v_now, 0, 0, 0, c.queue, c.name,
        case when c.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from (values (v_now), (case when p_paused then v_now + p_length end)) e(at) cross join channel c
    where e.at is not null and c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    perform notify_workers_v1(array[p_queue], v_now);
end
$$;
