-- Part of every verb that brings work: wake the workers that sleep at these queues, when this commits.
--
-- Keeps: with nobody asleep it is a look at an empty index. NOTIFY takes a lock that the whole
-- database shares until the commit is done, so it is sent only to sleepers; and not while the
-- notification queue is half full, because a full one would refuse the caller's commit. A ring is a
-- hint: who misses one finds the work by polling.
create or replace function "penstock".ring_v1(p_queues text[], p_now timestamptz)
returns void
language plpgsql
set search_path = "penstock", pg_temp
as $$
begin
    perform pg_notify(bell_v1(), x.queue)
    from (
        select distinct s.queue from sleeper s where s.until > p_now and s.queue = any(p_queues)
    ) x
    where pg_notification_queue_usage() < 0.5;
end
$$;
