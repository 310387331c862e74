-- remove: take no new messages in these channels; when the last one has ended, upkeep deletes the
-- channel with its policy, and the name is free again. A paused channel is resumed to drain.
-- Locks channel rows in id order.
create or replace function "laneway".remove_v1(
    p_queue text, p_channels text[], p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
begin
    perform pause_v1(p_queue, p_channels, false, null, p_now);
    update channel c set closing = true
    where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
end
$$;
