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

-- Part of every verb that adds work: notify the sleeping workers of these queues when this commits.
--
-- Keeps: with no sleeper it reads an empty index. NOTIFY takes a lock of the whole database until the
-- commit is done, so it is sent only if a worker sleeps; and not while the notification queue is half
-- full, because a full one would make the caller's commit fail. A notification is a hint: a worker that
-- misses one finds the work by polling.
--
-- p_kinds: the kinds of the work, null: any. Who sleeps for some kinds only gets one of these with the queue.
create or replace function "laneway".notify_workers_v1(
    p_queues text[], p_now timestamptz, p_kinds text[] default null
)
returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform pg_notify(notify_channel_v1(), x.payload)
    from (
        select distinct s.queue || coalesce(chr(1) || k.kind, '') as payload
        from sleeper s left join lateral (
            select k.kind from unnest(s.kinds) k(kind) where p_kinds is null or k.kind = any(p_kinds) limit 1
        ) k on true
        where s.until > p_now and s.queue = any(p_queues) and (s.kinds is null or k.kind is not null)
    ) x
    where pg_notification_queue_usage() < 0.5;
end
$$;
