-- Part of every verb that ends counted leases: one wake for each of their channels, with how many.
create or replace function "laneway".free_slots_v1(
    p_channel_ids uuid[], p_queues text[], p_channels text[], p_now timestamptz
) returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel, lane)
    select p_now, x.id, p_now, 0, 0, count(*), 0, x.queue, x.channel,
        case when x.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from unnest(p_channel_ids, p_queues, p_channels) x(id, queue, channel)
    group by x.id, x.queue, x.channel;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(p_queues, p_now);
    end if;
end
$$;
