-- worker_seen: a worker process is alive, and what it does now.
--
-- Keeps: one row a process. Locks only that row. Answers the leases under its name whose handlers are to
-- stop; again each time until they have ended, so that an answer that got lost does no harm.
create or replace function "laneway".worker_seen_v1(
    p_id text, p_name text, p_host text, p_pid integer, p_version text, p_queues text[], p_kinds text[],
    p_slots integer, p_used integer, p_stopping boolean, p_now timestamptz default null
) returns table (message_id bigint, fence bigint)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    insert into worker as w (id, name, host, pid, version, queues, kinds, slots, used, stopping, started_at, seen_at)
    values (p_id, p_name, p_host, p_pid, p_version, p_queues, p_kinds, p_slots, p_used, p_stopping, v_now, v_now)
    on conflict (id) do update set slots = p_slots, used = p_used, stopping = p_stopping, seen_at = v_now;
    return query
    select r.message_id, r.fence from cancel_request r
    where r.worker = p_name
        and exists (select from lease l where l.message_id = r.message_id and l.fence = r.fence);
end
$$;

-- worker_gone: the process stopped as it should.
create or replace function "laneway".worker_gone_v1(p_id text) returns void
language sql
set search_path = "laneway", pg_temp
as $$
    delete from worker w where w.id = p_id
$$;
