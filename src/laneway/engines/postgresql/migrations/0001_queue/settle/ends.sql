-- complete: the work is done, the message ends. Also with the outcome 'cancelled': its holder was told to stop.
--
-- p_waited: milliseconds that messages waited inside a worker before their handlers began, by id as JSON,
-- only those that did.
-- Keeps: only the holder of the lease with this fence ends the message. Locks leases in id order.
-- Answers only the lost ones, and records them: no row means that all were completed, the common and
-- cheap case.
create or replace function "laneway".complete_v1(
    p_ids bigint[], p_fences bigint[], p_now timestamptz default null, p_waited jsonb default null,
    p_outcome text default 'completed'
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
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
    v_took interval[];
    v_nodes bigint[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]),
        check_choice_v1('outcome', p_outcome, array['completed', 'cancelled']);
    -- Events are added before the messages are deleted: what is locked here is what ends below.
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array[p_outcome], array(
            select l.message_id from lease l
            where l.message_id = any(p_ids)
                and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
            order by l.message_id for update), v_now);
    end if;
    with ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    gone as (
        delete from message m where m.id = any(array(select e.message_id from ended e))
        returning m.id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size, m.flow_id
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select v_xid, g.id, e.fence, g.attempt + 1, g.first_published_at, g.published_at, g.due, e.claimed_at,
            case when p_waited is not null and p_waited ? g.id::text then
                least(e.claimed_at + (p_waited ->> g.id::text)::integer * interval '1 millisecond', v_now) end,
            v_now, g.payload_size, true, false, g.priority, g.queue, g.channel, g.kind, e.worker, p_outcome
        from gone g join ended e on e.message_id = g.id where v_history = 'all'
    )
    select e.ids, e.fences, k.ids, k.queues, k.keys, k.windows, f.ids, f.queues, f.channels, f.took, n.ids
    into v_ids, v_fences, v_keyed, v_key_queues, v_keys, v_windows, v_freed, v_freed_queues, v_freed_channels, v_took, v_nodes
    from (select array_agg(e.message_id) as ids, array_agg(e.fence) as fences from ended e) e
    cross join (
        select array_agg(g.id) as ids, array_agg(g.queue) as queues, array_agg(g.key) as keys, array_agg(g.key_window) as windows
        from gone g where g.key is not null
    ) k
    cross join (
        select array_agg(e.channel_id) as ids, array_agg(g.queue) as queues, array_agg(g.channel) as channels,
            array_agg(greatest(v_now - e.claimed_at - coalesce((p_waited ->> g.id::text)::integer, 0) * interval '1 millisecond', interval '0')) as took
        from ended e join gone g on g.id = e.message_id where e.counted
    ) f
    cross join (select array_agg(g.id) as ids from gone g where g.flow_id is not null) n;

    if v_keys is not null then
        perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now, v_took);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, v_ids, v_fences, p_outcome, v_now);
    end if;
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, case p_outcome when 'completed' then 'complete' else 'cancel' end, v_now);
    end if;
end
$$;

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
    v_took interval[];
    v_nodes bigint[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]);
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, left(x.reason, 1000) as reason, left(x.error_type, 1000) as error_type, left(x.error, 16384) as error,
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
        array_agg(f.channel) filter (where f.counted),
        array_agg(greatest(v_now - f.claimed_at - coalesce(f.waited, 0) * interval '1 millisecond', interval '0')) filter (where f.counted)
    into v_ids, v_fences, v_reasons, v_error_types, v_errors, v_tracebacks, v_freed, v_freed_queues, v_freed_channels, v_took
    from outcome f;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['failed'], v_ids, v_now);
    end if;
    if v_ids is not null then
        v_nodes := move_to_dead_v1(v_ids, v_reasons, v_error_types, v_errors, v_now, v_tracebacks);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now, v_took);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, null, 'dead', v_now);
    end if;
    return query select x.id, x.fence, 'failed' from unnest(v_ids, v_fences) x(id, fence);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'fail', v_now);
    end if;
end
$$;

-- Part of fail, defer and upkeep: move messages whose leases the caller has just ended to the dead
-- letters. The key stays in use, so that a redrive cannot create a second message with that key; if a message
-- waits behind it, that one has the key, and starts. Answers those that are nodes of flows, or null: the caller ends them.
create or replace function "laneway".move_to_dead_v1(
    p_ids bigint[], p_reasons text[], p_error_types text[], p_errors text[], p_now timestamptz,
    p_tracebacks text[] default null
) returns bigint[]
language plpgsql
as $$
declare
    v_nodes bigint[];
    v_keyed bigint[];
    v_queues text[];
    v_keys text[];
begin
    with gone as (
        delete from message m where m.id = any(p_ids) returning m.*
    ),
    cause as materialized (
        select * from unnest(p_ids, p_reasons, p_error_types, p_errors, p_tracebacks) x(id, reason, error_type, error, traceback)
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, count(*) from gone g group by g.queue, g.channel
    ),
    buried as (
        insert into dead (id, died_at, published_at, first_published_at, expires_at, key_window, attempt, max_attempts,
            priority, queue, channel, kind, key, content_type, headers, state_type, state, reason, error_type, error, traceback, payload,
            flow_id, tell_at)
        select g.id, p_now, g.published_at, g.first_published_at, g.expires_at, g.key_window, g.attempt + 1, g.max_attempts,
            g.priority, g.queue, g.channel, g.kind, g.key, g.content_type, g.headers, g.state_type, g.state,
            coalesce(c.reason, 'failed'), c.error_type, c.error, c.traceback, g.payload, g.flow_id, p_now
        from gone g join cause c on c.id = g.id
    )
    select array_agg(g.id) filter (where g.flow_id is not null), array_agg(g.id) filter (where g.key is not null),
        array_agg(g.queue) filter (where g.key is not null), array_agg(g.key) filter (where g.key is not null)
    into v_nodes, v_keyed, v_queues, v_keys from gone g;
    if v_keyed is not null then
        v_keyed := start_behind_v1(v_keyed, v_queues, v_keys, p_now);
        update dead d set key = null, key_window = null where v_keyed is not null and d.id = any(v_keyed);
    end if;
    if exists (select from listener l where l.until > p_now) then
        perform add_events_v1(array['dead'], p_ids, p_now);
    end if;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array['kept results'], p_now);
    end if;
    return v_nodes;
end
$$;

-- cancel: end waiting messages without an attempt. Leased ones stay with their holders.
--
-- Keeps: a message is either claimed or cancelled, never both: cancelling locks the channel, as a
-- claim does. Locks channel rows in id order.
create or replace function "laneway".cancel_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_nodes bigint[];
begin
    for id, status, v_nodes in select c.id, c.status, c.nodes from cancel_waiting_v1(p_ids, p_now) c loop
        exit when id is null;
        return next;
    end loop;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, null, 'cancelled', write_time_v1(p_now));
    end if;
end
$$;

-- Part of cancelling: as cancel_v1. The nodes of flows among them are in the last row, which has no id: the caller ends
-- them, once it waits for nothing else.
create or replace function "laneway".cancel_waiting_v1(p_ids bigint[], p_now timestamptz)
returns table (id bigint, status text, nodes bigint[])
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_ended bigint[];
    v_nodes bigint[];
begin
    perform lock_channels_v1(array_agg(x.queue), array_agg(x.channel))
    from (select distinct m.queue, m.channel from message m where m.id = any(p_ids)) x;
    -- Read once the channels are locked: a holder may have ended its attempt while this waited.
    v_now := write_time_v1(p_now);
    select e.ended, e.nodes into v_ended, v_nodes from end_waiting_v1(p_ids, 'cancelled', v_now, true) e;
    return query
    select x.id, case
        when x.id = any(v_ended) then 'cancelled'
        when exists (select from message m where m.id = x.id and (m.part is null or m.part not in (select p.id from staged_part p))) then 'leased'
        when exists (select from dead d where d.id = x.id) then 'dead'
        else 'absent' end, null::bigint[]
    from (select distinct u.id from unnest(p_ids) u(id)) x;
    return query select null::bigint, null::text, v_nodes;
end
$$;

-- Part of cancel and upkeep: end those of the given messages that are not leased. The caller has locked
-- their channels. Answers the ids that ended, and those of them that are nodes of flows, or null: the caller ends these.
-- Locks keys in order, then messages. p_wait: for keys; upkeep has others already, and leaves what it would wait for.
create or replace function "laneway".end_waiting_v1(
    p_ids bigint[], p_outcome text, p_now timestamptz, p_wait boolean, out ended bigint[], out nodes bigint[]
)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    v_busy bigint[];
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
    v_keeps interval[];
begin
    v_busy := lock_keys_v1(p_ids, p_wait);
    if v_busy <> '{}' then
        p_ids := array(select x.id from unnest(p_ids) x(id) where x.id <> all(v_busy));
    end if;
    with done as (
        delete from message m
        where m.id = any(p_ids) and (m.part is null or m.part not in (select p.id from staged_part p))
            and not exists (select from lease l where l.message_id = m.id offset 0)
        returning m.id, m.channel_id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due, m.by_kind,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size,
            keep_result_v1(m.headers) as keep, m.flow_id
    ),
    recorded as (
        insert into history (message_id, attempt, first_published_at, published_at, due, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, outcome)
        select d.id, d.attempt, d.first_published_at, d.published_at, d.due, p_now,
            d.payload_size, true, false, d.priority, d.queue, d.channel, d.kind, p_outcome
        from done d, setting s where s.history = 'all'
    ),
    -- One message fewer, from just after the moment at which its own wake counts it.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select case when d.due > p_now then d.due + interval '1 microsecond' else p_now end,
            d.channel_id, d.due, d.id, -1, d.priority, d.queue, d.channel,
            case when d.by_kind then '=' || d.kind when d.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from done d
        union all
        -- One at a time: the next may be of another kind now.
        select p_now, d.channel_id, p_now, 0, 0, 0, d.queue, d.channel, '-'
        from (select distinct d.channel_id, d.queue, d.channel from done d where d.by_kind) d
        where exists (select from channel c where c.id = d.channel_id and c.concurrency = 1 offset 0)
    )
    select coalesce(array_agg(d.id), '{}'),
        array_agg(d.id) filter (where d.key is not null), array_agg(d.queue) filter (where d.key is not null),
        array_agg(d.key) filter (where d.key is not null), array_agg(d.key_window) filter (where d.key is not null),
        array_agg(d.queue), array_agg(d.channel), array_agg(d.kind), array_agg(d.keep), array_agg(d.id) filter (where d.flow_id is not null)
    into ended, v_keyed, v_key_queues, v_keys, v_windows, v_queues, v_channels, v_kinds, v_keeps, nodes
    from done d;
    perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, p_now);
    perform keep_ended_v1(array_agg(x.id), array_agg(x.queue), array_agg(x.channel), array_agg(x.kind), array_agg(x.keep),
        p_outcome, '{}', '{}', '{}', p_now)
    from unnest(ended, v_queues, v_channels, v_kinds, v_keeps) x(id, queue, channel, kind, keep) where x.keep is not null;
    if exists (select from listener l where l.until > p_now) then
        perform deliver_events_v1(array_fill(p_outcome, array[cardinality(ended)]), ended, v_queues, v_channels, v_kinds, p_now);
    end if;
end
$$;
