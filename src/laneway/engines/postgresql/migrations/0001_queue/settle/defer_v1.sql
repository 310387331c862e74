-- defer: put the message back for later, with saved state.
--
-- Without an error it is progress: the count of failed attempts starts again at zero. With an error it
-- is a failed attempt: it counts, and the one that reaches max_attempts makes a dead letter ('dead').
-- p_keep: keep the saved state as it is; else p_states replaces it, null clears it.
-- p_waited: milliseconds that the message waited inside a worker before its handler began, or null.
-- p_tracebacks: kept with a dead letter.
--
-- Keeps: only the holder of the lease with this fence defers the message. Locks leases in id order.
-- Answers a row a message: 'deferred', 'dead' or 'lost'.
create or replace function "laneway".defer_v1(
    p_ids bigint[], p_fences bigint[], p_delays interval[], p_ats timestamptz[],
    p_keep boolean[], p_states bytea[], p_state_types text[],
    p_reasons text[], p_error_types text[], p_errors text[],
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
    v_status text[];
    v_dead bigint[];
    v_error_types text[];
    v_errors text[];
    v_tracebacks text[];
    v_back bigint[];
    v_dues timestamptz[];
    v_fails boolean[];
    v_keep boolean[];
    v_states bytea[];
    v_state_types text[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, x.keep, x.state, x.state_type, x.reason, x.error_type,
            left(x.error, 16384) as error, coalesce(x.at, v_now + coalesce(x.delay, interval '0')) as next_due,
            x.error_type is not null or x.error is not null or x.reason is not null as failed,
            x.waited, right(x.traceback, 8192) as traceback
        from unnest(p_ids, p_fences, p_delays, p_ats, p_keep, p_states, p_state_types, p_reasons, p_error_types, p_errors,
            p_waited, p_tracebacks)
            x(id, fence, delay, at, keep, state, state_type, reason, error_type, error, waited, traceback)
    ),
    ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    outcome as materialized (
        select e.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel,
            m.kind, octet_length(m.payload) as payload_size, i.next_due, i.failed, i.reason, i.error_type, i.error,
            i.keep, i.state, i.state_type, i.waited, i.traceback,
            i.failed and m.spent + 1 >= m.max_attempts as dead
        from ended e
        cross join lateral (select k.* from message k where k.id = e.message_id offset 0) m
        join item i on i.id = e.message_id and i.fence = e.fence
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason, error_type, error)
        select v_xid, f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at,
            case when f.waited is not null then least(f.claimed_at + f.waited * interval '1 millisecond', v_now) end,
            v_now, f.payload_size, false, f.dead, f.priority, f.queue, f.channel, f.kind, f.worker,
            case when f.failed then 'retried' else 'deferred' end,
            case when f.dead then 'max_attempts' else f.reason end, f.error_type, f.error
        from outcome f where v_history = 'all' or (v_history = 'failures' and f.failed)
    )
    select array_agg(f.message_id), array_agg(f.fence), array_agg(case when f.dead then 'dead' else 'deferred' end),
        array_agg(f.message_id) filter (where f.dead), array_agg(f.error_type) filter (where f.dead),
        array_agg(f.error) filter (where f.dead), array_agg(f.traceback) filter (where f.dead),
        array_agg(f.message_id) filter (where not f.dead), array_agg(f.next_due) filter (where not f.dead),
        array_agg(f.failed) filter (where not f.dead), array_agg(f.keep) filter (where not f.dead),
        array_agg(f.state) filter (where not f.dead), array_agg(f.state_type) filter (where not f.dead),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted)
    into v_ids, v_fences, v_status, v_dead, v_error_types, v_errors, v_tracebacks,
        v_back, v_dues, v_fails, v_keep, v_states, v_state_types, v_freed, v_freed_queues, v_freed_channels
    from outcome f;

    if v_back is not null then
        perform put_back_v1(v_back, v_dues, array_fill(true, array[cardinality(v_back)]), v_fails,
            v_keep, v_states, v_state_types, v_now);
    end if;
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(
            array(select case when f then 'retried' else 'deferred' end from unnest(v_fails) f)
                || array(select 'retried'::text from unnest(v_dead)),
            v_back || v_dead, v_now);
    end if;
    if v_dead is not null then
        perform move_to_dead_v1(v_dead, array_fill('max_attempts'::text, array[cardinality(v_dead)]), v_error_types, v_errors, v_now,
            v_tracebacks);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;
    return query select * from unnest(v_ids, v_fences, v_status);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'defer', v_now);
    end if;
end
$$;
