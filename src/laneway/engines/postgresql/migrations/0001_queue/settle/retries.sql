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
    v_took interval[];
    v_nodes bigint[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]),
        check_lengths_v1('delay', p_delays), check_times_v1('time "at"', p_ats), check_payloads_v1('state', p_states),
        check_content_types_v1(p_state_types);
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, x.keep, x.state, x.state_type, left(x.reason, 1000) as reason, left(x.error_type, 1000) as error_type,
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
        array_agg(f.channel) filter (where f.counted),
        array_agg(greatest(v_now - f.claimed_at - coalesce(f.waited, 0) * interval '1 millisecond', interval '0')) filter (where f.counted)
    into v_ids, v_fences, v_status, v_dead, v_error_types, v_errors, v_tracebacks,
        v_back, v_dues, v_fails, v_keep, v_states, v_state_types, v_freed, v_freed_queues, v_freed_channels, v_took
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
        v_nodes := move_to_dead_v1(v_dead, array_fill('max_attempts'::text, array[cardinality(v_dead)]), v_error_types, v_errors, v_now,
            v_tracebacks);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now, v_took);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, null, 'dead', v_now);
    end if;
    return query select * from unnest(v_ids, v_fences, v_status);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'defer', v_now);
    end if;
end
$$;

-- give back: the work was not begun; the message waits again at its old position and the attempt is not
-- counted. With a delay it becomes due later instead.
--
-- Keeps: only the holder of the lease with this fence gives the message back, and its row is not
-- rewritten unless it is delayed. Locks leases in id order. Answers a row a message: 'given_back' or
-- 'lost'.
create or replace function "laneway".give_back_v1(
    p_ids bigint[], p_fences bigint[], p_delays interval[] default '{}', p_now timestamptz default null
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
    v_late bigint[];
    v_dues timestamptz[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]),
        check_lengths_v1('delay', p_delays);
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, nullif(x.delay, interval '0') as delay
        from unnest(p_ids, p_fences, p_delays) x(id, fence, delay)
    ),
    ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    outcome as materialized (
        select e.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind, m.by_kind,
            octet_length(m.payload) as payload_size, i.delay, coalesce(v_now + i.delay, m.due) as next_due
        from ended e
        cross join lateral (select k.* from message k where k.id = e.message_id offset 0) m
        join item i on i.id = e.message_id and i.fence = e.fence
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select v_xid, f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at,
            v_now, f.payload_size, false, false, f.priority, f.queue, f.channel, f.kind, f.worker, 'given_back'
        from outcome f where v_history = 'all'
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(f.next_due, v_now), f.channel_id, f.next_due, f.message_id, 1, f.priority, f.queue, f.channel,
            case when f.by_kind then '=' || f.kind when f.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from outcome f where f.delay is null
    )
    select array_agg(f.message_id), array_agg(f.fence),
        array_agg(f.message_id) filter (where f.delay is not null), array_agg(f.next_due) filter (where f.delay is not null),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted)
    into v_ids, v_fences, v_late, v_dues, v_freed, v_freed_queues, v_freed_channels
    from outcome f;

    if v_late is not null then
        perform put_back_v1(v_late, v_dues, array_fill(false, array[cardinality(v_late)]), '{}',
            array_fill(true, array[cardinality(v_late)]), '{}', '{}', v_now);
    end if;
    if exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array(
            select k.queue from unnest(v_ids) x(id)
            cross join lateral (select m.queue from message m where m.id = x.id offset 0) k
            where x.id <> all(coalesce(v_late, '{}'))), v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['given_back'], v_ids, v_now);
    end if;
    return query select x.id, x.fence, 'given_back' from unnest(v_ids, v_fences) x(id, fence);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'give_back', v_now);
    end if;
end
$$;

-- Part of defer, give back and upkeep: messages whose leases the caller has just ended wait again
-- from p_dues on, with a wake for each. counts: the attempt is counted; fails: it also counts towards
-- max_attempts, else that count starts again at zero.
create or replace function "laneway".put_back_v1(
    p_ids bigint[], p_dues timestamptz[], p_counts boolean[], p_fails boolean[],
    p_keep boolean[], p_states bytea[], p_state_types text[], p_now timestamptz
) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    with back as (
        update message m set
            due = x.due,
            attempt = case when x.counts then m.attempt + 1 else m.attempt end,
            spent = case when not x.counts then m.spent when x.fails then m.spent + 1 else 0 end,
            state = case when x.keep then m.state else x.state end,
            state_type = case when x.keep then m.state_type else x.state_type end
        from unnest(p_ids, p_dues, p_counts, p_fails, p_keep, p_states, p_state_types)
            x(id, due, counts, fails, keep, state, state_type)
        where m.id = x.id
        returning m.id, m.channel_id, m.due, m.priority, m.queue, m.channel, m.kind, m.by_kind
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select greatest(b.due, p_now), b.channel_id, b.due, b.id, 1, b.priority, b.queue, b.channel,
        case when b.by_kind then '=' || b.kind when b.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from back b;

    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array(
            select k.queue from unnest(p_ids, p_dues) x(id, due)
            cross join lateral (select m.queue from message m where m.id = x.id offset 0) k
            where x.due < p_now + interval '2 seconds'), p_now);
    end if;
end
$$;
