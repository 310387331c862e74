-- sleep: from now on, for p_length, ring for this worker when something comes to its queues. With no
-- length it is awake: nobody rings for it.
--
-- Keeps: a worker has one row a queue. Whoever sleeps looks once more before it waits, so only a
-- publish that was already under way can miss it. Rows of workers that are gone are swept here.
create or replace function "penstock".sleep_v1(
    p_queues text[], p_worker text, p_length interval, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "penstock", pg_temp
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    delete from sleeper s where s.ctid = any(array(
        select k.ctid from sleeper k where k.worker = p_worker or k.until < v_now
        for update skip locked));
    insert into sleeper (until, queue, worker)
    select v_now + p_length, q.name, p_worker from unnest(p_queues) q(name) where p_length is not null;
end
$$;
