-- Part of every verb that ends counted leases: tell their limited channels, one wake each.
create or replace function "penstock".free_slots_v1(
    p_lanes uuid[], p_queues text[], p_channels text[], p_now timestamptz
) returns void
language plpgsql
set search_path = "penstock", pg_temp
as $$
begin
    insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel)
    select p_now, x.id, p_now, 0, 0, count(*), 0, x.queue, x.channel
    from unnest(p_lanes, p_queues, p_channels) x(id, queue, channel)
    group by x.id, x.queue, x.channel;
    if exists (select from sleeper s where s.until > p_now) then
        perform ring_v1(p_queues, p_now);
    end if;
end
$$;
