-- sleep: notify this worker for p_length when a message comes to its queues. Without a length: it is
-- awake, no longer notify it.
--
-- Keeps: a worker has one row a queue. It claims once more between this call and its wait, so only a
-- publish that was already running can miss it. Rows of workers that are gone are deleted here.
create or replace function "laneway".sleep_v1(
    p_queues text[], p_worker text, p_length interval, p_now timestamptz default null, p_kinds text[] default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    delete from sleeper s where s.ctid = any(array(
        select k.ctid from sleeper k where k.worker = p_worker or k.until < v_now
        for update skip locked));
    insert into sleeper (until, queue, worker, kinds)
    select v_now + p_length, q.name, p_worker, p_kinds from unnest(p_queues) q(name) where p_length is not null;
end
$$;
