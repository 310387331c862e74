-- pause of a queue, or of one kind of it: nothing of it starts, for p_length if there is one; publishing
-- goes on. Replaces an earlier pause of the same.
--
-- Keeps: once this is committed, no claim starts anything of the queue. Every claim shares a lock on its
-- queues before it looks for pauses, so this waits for those that looked before; later ones see it.
create or replace function "laneway".pause_queue_v1(
    p_queue text, p_kind text, p_length interval, p_actor text, p_reason text, p_now timestamptz default null
) returns setof "laneway".pause
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
as $$
declare
    v_now timestamptz;
begin
    perform pg_advisory_xact_lock(hashtextextended(p_queue, 'pause'::regclass::oid::bigint));
    v_now := write_time_v1(p_now);
    delete from pause p where p.queue = p_queue and p.kind is not distinct from p_kind;
    return query
    insert into pause (queue, kind, until, since, actor, reason)
    values (p_queue, p_kind, v_now + p_length, v_now, p_actor, p_reason)
    returning *;
end
$$;
