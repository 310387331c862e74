-- fail: the message becomes a dead letter with this reason and error.
--
-- Keeps: only the holder of the lease with this fence fails the message. The error's text is cut at
-- 16 KiB, its traceback at 8. p_waited: see defer. Locks leases in id order. Answers a row a message: 'failed' or 'lost'.
create or replace function "laneway".fail_v1(
    p_ids bigint[], p_fences bigint[], p_reasons text[], p_error_types text[], p_errors text[],
    p_now timestamptz default null,
    p_waited integer[] default null, p_tracebacks text[] default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_history text := (select s.history from setting s);
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_ids bigint[];
    v_fences bigint[];
    v_reasons text[];
    v_error_types text[];
    v_errors text[];
    v_tracebacks text[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, x.reason, x.error_type, left(x.error, 16384) as error,
            x.waited, right(x.traceback, 8192) as traceback
        from unnest(p_ids, p_fences, p_reasons, p_error_types, p_errors, p_waited, p_tracebacks)
            x(id, fence, reason, error_type, error, waited, traceback)
    ),
    ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    outcome as materialized (
        select e.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind,
            octet_length(m.payload) as payload_size, i.reason, i.error_type, i.error, i.waited, i.traceback
        from ended e
        cross join lateral (select k.* from message k where k.id = e.message_id offset 0) m
        join item i on i.id = e.message_id and i.fence = e.fence
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason, error_type, error)
        select v_xid, f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at,
            case when f.waited is not null then least(f.claimed_at + f.waited * interval '1 millisecond', v_now) end,
            v_now, f.payload_size, false, true, f.priority, f.queue, f.channel, f.kind, f.worker, 'failed',
            f.reason, f.error_type, f.error
        from outcome f where v_history <> 'none'
    )
    select array_agg(f.message_id), array_agg(f.fence),
        array_agg(f.reason), array_agg(f.error_type), array_agg(f.error), array_agg(f.traceback),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted)
    into v_ids, v_fences, v_reasons, v_error_types, v_errors, v_tracebacks, v_freed, v_freed_queues, v_freed_channels
    from outcome f;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['failed'], v_ids, v_now);
    end if;
    if v_ids is not null then
        perform move_to_dead_v1(v_ids, v_reasons, v_error_types, v_errors, v_now, v_tracebacks);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;
    return query select x.id, x.fence, 'failed' from unnest(v_ids, v_fences) x(id, fence);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'fail', v_now);
    end if;
end
$$;
