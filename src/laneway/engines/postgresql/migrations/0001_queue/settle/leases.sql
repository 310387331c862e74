-- hold: extend many leases without waiting for any of them.
--
-- Keeps: only the holder of the lease with this fence extends it, never to an earlier end. Waits for nobody: a
-- lease that another transaction has locked, perhaps its own holder's, is left as it is; nobody can take it from
-- its holder meanwhile. Records nothing for lost ones: their holder did not try to settle them.
-- Answers those that were not extended: 'locked', or 'lost'. No row means that all were extended.
create or replace function "laneway".hold_v1(
    p_ids bigint[], p_fences bigint[], p_length interval, p_now timestamptz default null
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
    v_now timestamptz := time_v1(p_now);
    v_free bigint[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]),
        check_leases_v1(array[p_length]);
    -- Two statements: only the second one sees what was changed between the read and the lock.
    v_free := array(
        select l.message_id from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        for update skip locked);
    update lease l set until = greatest(l.until, v_now + p_length) where l.message_id = any(v_free);

    if cardinality(v_free) = cardinality(p_ids) then
        return;
    end if;
    return query
    select x.id, x.fence, case when l.message_id is null then 'lost' else 'locked' end
    from unnest(p_ids, p_fences) x(id, fence)
    left join lateral (
        select k.message_id from lease k where k.message_id = x.id and k.fence = x.fence offset 0
    ) l on true
    where (l.message_id = any(v_free)) is not true;
end
$$;

-- extend: hold the lease until now + the given length; never shortens it.
--
-- Keeps: only the holder of the lease with this fence extends it. Locks leases in id order.
-- p_lengths: one a message, or a single one for all.
-- Answers a row a message: 'extended' with the lease's end, or 'lost'.
create or replace function "laneway".extend_v1(
    p_ids bigint[], p_fences bigint[], p_lengths interval[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text, until timestamptz)
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
    v_now timestamptz := time_v1(p_now);
    v_ids bigint[];
    v_fences bigint[];
    v_until timestamptz[];
begin
    perform check_counts_v1('ids and fences', array[cardinality(p_ids), cardinality(p_fences)]),
        check_leases_v1(p_lengths);
    with held as (
        update lease l set until = greatest(l.until, v_now + (
            select coalesce(x.length, p_lengths[1]) from unnest(p_ids, p_lengths) x(id, length) where x.id = l.message_id limit 1))
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.until
    )
    select array_agg(h.message_id), array_agg(h.fence), array_agg(h.until) into v_ids, v_fences, v_until from held h;

    return query select x.id, x.fence, 'extended', x.until from unnest(v_ids, v_fences, v_until) x(id, fence, until);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select l.id, l.fence, l.status, null::timestamptz
        from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'extend', v_now) l;
    end if;
end
$$;

-- Part of every settling verb: answer and record the messages whose leases were lost, with the verb that
-- came too late. p_kept_ids/p_kept_fences: those that were still held.
create or replace function "laneway".report_lost_v1(
    p_ids bigint[], p_fences bigint[], p_kept_ids bigint[], p_kept_fences bigint[], p_verb text, p_now timestamptz
) returns table (id bigint, fence bigint, status text)
language plpgsql
set enable_hashjoin = on
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    select array_agg(x.id), array_agg(x.fence) into v_ids, v_fences
    from (
        select a.id, a.fence from unnest(p_ids, p_fences) a(id, fence)
        except
        select k.id, k.fence from unnest(p_kept_ids, p_kept_fences) k(id, fence)
    ) x;
    insert into history (message_id, fence, attempt, ended_at, terminal, dead, queue, channel, kind, outcome, reason)
    select x.id, coalesce(x.fence, 0), coalesce(m.attempt, 0), p_now, false, false,
        coalesce(m.queue, ''), coalesce(m.channel, ''), coalesce(m.kind, ''), 'stale', p_verb
    from unnest(v_ids, v_fences) x(id, fence)
    left join lateral (select k.* from message k where k.id = x.id offset 0) m on true
    where x.id is not null and (select s.history from setting s) <> 'none';
    return query select x.id, x.fence, 'lost' from unnest(v_ids, v_fences) x(id, fence);
end
$$;

-- Part of every verb that ends counted leases: one wake for each of their channels, with how many, and how long
-- their handlers took; those that did not begin (p_took is null) have a wake of their own.
create or replace function "laneway".free_slots_v1(
    p_channel_ids uuid[], p_queues text[], p_channels text[], p_now timestamptz, p_took interval[] default '{}'
) returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel, lane)
    select p_now, x.id, p_now, -coalesce(sum(greatest(1, extract(epoch from x.took) * 1000000)), 0)::bigint, 0, count(*), 0, x.queue, x.channel,
        case when x.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from unnest(p_channel_ids, p_queues, p_channels, p_took) x(id, queue, channel, took)
    group by x.id, x.queue, x.channel, x.took is null;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(p_queues, p_now);
    end if;
end
$$;

-- What handlers have done already, by a key that they choose; kept until a time.
create table "laneway".done (
    queue text collate "C" not null,
    key text collate "C" not null,
    keep_until timestamptz not null,
    primary key (queue, key)
);
create index done_expiry on "laneway".done (keep_until);

-- once: record in the caller's transaction that something is done; true the first time.
--
-- Keeps: of all transactions with the same key, exactly one that commits gets true. Another one waits
-- meanwhile until that one has ended. After p_keep the key is forgotten; each call that records a key
-- deletes a few forgotten ones, and waits for nobody over them.
create or replace function "laneway".once_v1(
    p_queue text, p_key text, p_keep interval, p_now timestamptz default null
) returns boolean
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now timestamptz;
begin
    perform check_names_v1('queue', array[p_queue]), check_names_v1('key', array[p_key]), check_lengths_v1('time to keep', array[p_keep]);
    insert into done (queue, key, keep_until)
    values (p_queue, p_key, time_v1(p_now) + p_keep)
    on conflict do nothing;
    if not found then
        -- The insert may have waited: the clock is read after it.
        v_now := time_v1(p_now);
        update done d set keep_until = v_now + p_keep
        where d.queue = p_queue and d.key = p_key and d.keep_until <= v_now;
        return found;
    end if;
    v_now := time_v1(p_now);
    delete from done d where d.ctid = any(array(
        select k.ctid from done k where k.keep_until <= v_now order by k.keep_until limit 5 for update skip locked));
    return true;
end
$$;
