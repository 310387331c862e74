-- throttle: nothing is claimed from the channel for p_length; a pause that lasts longer stays as it is.
-- Locks like pause_v1.
create or replace function "laneway".throttle_v1(
    p_queue text, p_channel text, p_length interval, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_id uuid := channel_id_v1(p_queue, p_channel);
begin
    perform lock_channels_v1(array[p_queue], array[p_channel]);
    if exists (
        select from channel c
        where c.id = v_id and c.paused and coalesce(c.paused_until >= v_now + p_length, true))
    then
        return;
    end if;
    perform pause_v1(p_queue, array[p_channel], true, p_length, v_now);
    update channel c set throttled = true where c.id = v_id;
end
$$;
