-- upkeep: periodic maintenance. Any process may call it as often as it likes: one at a time works (a
-- transaction-level lock), the others answer at once with ran = false.
create or replace function "laneway".upkeep_v1(
    p_limit integer default 1000, p_floor timestamptz default null, p_now timestamptz default null,
    p_life bigint default null, out life bigint,
    out ran boolean, out expired bigint, out buried bigint, out lapsed bigint, out tidied bigint,
    out partitioned bigint, out floor timestamptz
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_dead bigint[];
    v_lapsed bigint[];
    v_left bigint[];
    v_locked bigint[];
begin
    perform check_numbers_v1('limit', array[coalesce(p_limit, 0)], 1, 10000);
    -- Else a role that was only granted this verb could drop history with a time in the future.
    if p_now is not null and not pg_has_role(session_user, current_user, 'member') then
        p_now := null;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'laneway: upkeep needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Run it on a connection of its own.';
    end if;
    life := server_life_v1();
    if p_life is distinct from life then
        -- Leases that had ended in the life before may be there again.
        p_floor := null;
    end if;
    ran := pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.upkeep', 0));
    if not ran then
        floor := p_floor;
        return;
    end if;
    select e.expired, e.buried, e.floor, e.nodes into expired, buried, floor, v_dead
    from expire_leases_v1(p_limit, p_floor, p_now) e;
    select l.lapsed, l.nodes into lapsed, v_lapsed from lapse_v1(p_limit, p_now) l;
    v_left := case when exists (select from flow_undecided) then undecided_nodes_v1() end;
    -- All nodes at once, and after everything else that this may wait for.
    if v_dead is not null or v_lapsed is not null or v_left is not null then
        v_locked := (
            select l.locked from lock_ends_v1(coalesce(v_dead, '{}') || coalesce(v_lapsed, '{}'), true, true, '{}', coalesce(v_left, '{}')) l);
        if v_dead is not null then
            perform end_nodes_v1(v_dead, null, null, 'dead', write_time_v1(p_now), v_locked);
        end if;
        if v_lapsed is not null then
            perform end_nodes_v1(v_lapsed, null, null, 'lapsed', write_time_v1(p_now), v_locked);
        end if;
        if v_left is not null then
            perform decide_locked_v1(v_left, v_locked, write_time_v1(p_now));
        end if;
    end if;
    tidied := coalesce(cardinality(v_left), 0) + settle_strays_v1(p_limit, p_now) + cleanup_v1(p_limit, p_now)
        + control_cleanup_v1(p_limit, p_now) + cleanup_workers_v1(p_limit, p_now) + cleanup_results_v1(p_limit, p_now)
        + cleanup_flows_v1(p_limit, p_now) + cleanup_limits_v1(p_limit, p_now)
        + case when exists (select from staged_part) or exists (select from staged) then sweep_staged_v1(10 * p_limit) else 0 end;
    partitioned := partition_v1(p_now);
end
$$;

-- Part of upkeep: expired leases. The message waits again in its channel, longer each time; one that has
-- reached max_attempts becomes a dead letter here, before it can be delivered again.
--
-- Locks leases with SKIP LOCKED: one that its holder is settling is left to the holder. nodes: those of flows that died,
-- or null; the caller ends them.
-- p_floor: where the live part of lease_until began at the last call, null for a full scan.
create or replace function "laneway".expire_leases_v1(
    p_limit integer, p_floor timestamptz default null, p_now timestamptz default null,
    out expired bigint, out buried bigint, out floor timestamptz, out nodes bigint[]
)
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
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_from timestamptz := case when p_floor <= v_now then p_floor else '-infinity' end;
    v_setting setting;
    v_due bigint[];
    v_busy bigint[];
    v_dead bigint[];
    v_back bigint[];
    v_dues timestamptz[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
    v_took interval[];
begin
    -- Read first: upkeep that finds nothing writes nothing.
    select array_agg(l.message_id), coalesce(min(l.until), v_now) into v_due, floor
    from (select k.message_id, k.until from lease k
        where k.until >= v_from and k.until <= v_now order by k.until limit p_limit) l;
    if v_due is null then
        expired := 0;
        buried := 0;
        return;
    end if;
    select s.* into v_setting from setting s;
    -- Upkeep waits for nobody: a message that would die while somebody holds its key (replace_v1) dies next time.
    v_busy := lock_keys_v1(array(
        select m.id from message m where m.id = any(v_due) and m.key is not null and m.spent + 1 >= m.max_attempts), false);
    v_due := array(select x.id from unnest(v_due) x(id) where x.id <> all(v_busy));
    v_now := write_time_v1(p_now);

    with lost as materialized (
        select l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker from lease l
        where l.message_id = any(v_due) and l.until <= v_now
        order by l.message_id for update skip locked
    ),
    ended as (
        delete from lease l where l.message_id = any(array(select o.message_id from lost o))
    ),
    outcome as materialized (
        select o.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind,
            octet_length(m.payload) as payload_size, m.spent + 1 >= m.max_attempts as dead,
            v_now + least(v_setting.backoff_max, v_setting.backoff_initial * power(2, least(m.spent, 40))) as next_due
        from lost o
        cross join lateral (select k.* from message k where k.id = o.message_id offset 0) m
    ),
    recorded as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason)
        select f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at, v_now,
            f.payload_size, false, f.dead, f.priority, f.queue, f.channel, f.kind, f.worker,
            'expired', case when f.dead then 'max_attempts' end
        from outcome f where v_setting.history <> 'none'
    )
    select count(*), array_agg(f.message_id) filter (where f.dead),
        array_agg(f.message_id) filter (where not f.dead), array_agg(f.next_due) filter (where not f.dead),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted),
        -- Whoever held it may have worked all the while.
        array_agg(v_now - f.claimed_at) filter (where f.counted)
    into expired, v_dead, v_back, v_dues, v_freed, v_freed_queues, v_freed_channels, v_took from outcome f;

    if v_back is not null then
        perform put_back_v1(v_back, v_dues, array_fill(true, array[cardinality(v_back)]),
            array_fill(true, array[cardinality(v_back)]), array_fill(true, array[cardinality(v_back)]), '{}', '{}', v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now, v_took);
    end if;

    if exists (select from shared_limit l where l.adapt_min is not null or l.breaker_window is not null) then
        perform note_expired_limits_v1(v_back || v_dead, v_now);
    end if;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['expired'], v_back || v_dead, v_now);
    end if;
    buried := coalesce(cardinality(v_dead), 0);
    if buried > 0 then
        nodes := move_to_dead_v1(v_dead, array_fill('max_attempts'::text, array[buried::integer]),
            array_fill('LeaseExpired'::text, array[buried::integer]),
            array_fill('the lease ran out before the work was settled'::text, array[buried::integer]), v_now);
    end if;
end
$$;

-- Part of upkeep: waiting messages whose expires_at has passed end as 'lapsed'. Claims skip them;
-- here they are deleted. Locks their channels, as a claim does (SKIP LOCKED), and keys that are free. nodes: those of
-- flows, or null; the caller ends them.
create or replace function "laneway".lapse_v1(
    p_limit integer, p_now timestamptz default null, out lapsed bigint, out nodes bigint[]
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_past bigint[];
    v_channel_ids uuid[];
begin
    lapsed := 0;
    select array_agg(x.id), array_agg(distinct x.channel_id) into v_past, v_channel_ids
    from (select m.id, m.channel_id from message m
        where m.expires_at <= v_now and (m.part is null or m.part not in (select p.id from staged_part p))
            and not exists (select from lease l where l.message_id = m.id offset 0)
        order by m.expires_at limit p_limit) x;
    if v_past is null then
        return;
    end if;
    v_now := write_time_v1(p_now);
    insert into channel (id, queue, name)
    select distinct on (m.channel_id) m.channel_id, m.queue, m.channel
    from message m where m.id = any(v_past) order by m.channel_id
    on conflict do nothing;
    v_channel_ids := array(select c.id from channel c where c.id = any(v_channel_ids) for no key update skip locked);
    select cardinality(e.ended), e.nodes into lapsed, nodes
    from end_waiting_v1(
        -- Read again: one that was replaced (replace_v1) may have more time.
        array(select m.id from message m
            where m.id = any(v_past) and m.channel_id = any(v_channel_ids) and m.expires_at <= v_now), 'lapsed', v_now, false) e;
end
$$;

-- Part of upkeep: leases that were charged to a channel's new limit while another transaction had them
-- locked. Still there: mark them as counted, so that their end frees the slot. Gone: free it now.
create or replace function "laneway".settle_strays_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz;
    v_done bigint;
begin
    if not exists (select from stray) then
        return 0;
    end if;
    v_now := write_time_v1(p_now);
    with found as materialized (
        select s.ctid as row, s.message_id, s.fence, s.channel_id, s.queue, s.channel, exists (
            select from lease l where l.message_id = s.message_id and l.fence = s.fence offset 0) as held
        from stray s limit p_limit
    ),
    open as materialized (
        select l.message_id, l.fence from lease l
        where l.message_id = any(array(select s.message_id from found s where s.held))
        order by l.message_id for update skip locked
    ),
    alive as (
        update lease l set counted = true
        where l.message_id = any(array(
            select o.message_id from open o join found s on s.message_id = o.message_id and s.fence = o.fence))
        returning l.message_id, l.fence
    ),
    gone as (
        select s.row, s.channel_id, s.queue, s.channel from found s where not s.held
    ),
    freed as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel, lane)
        select v_now, g.channel_id, v_now, 0, 0, count(*), 0, g.queue, g.channel,
            case when g.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from gone g group by g.channel_id, g.queue, g.channel
    ),
    settled as (
        delete from stray t
        where t.ctid = any(array(
            select g.row from gone g
            union all
            select s.row from found s join alive a on a.message_id = s.message_id and a.fence = s.fence))
        returning t.message_id
    )
    select count(*) into v_done from settled;
    return v_done;
end
$$;

-- Part of upkeep: history partitions, one a day: today's and the next three exist, those past the
-- retention are dropped whole, except those that are still needed. If a lock is not free at once, it is
-- left for the next time, so that nobody waits behind this.
create or replace function "laneway".partition_v1(p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '100ms'
as $$
declare
    v_today date := (coalesce(p_now, clock_timestamp()) at time zone 'UTC')::date;
    v_keep integer := (select s.history_days from setting s);
    v_day date;
    v_name text;
    v_done bigint := 0;
begin
    for v_day in select v_today + i from generate_series(0, 3) i loop
        v_name := 'history_' || to_char(v_day, 'YYYYMMDD');
        continue when to_regclass(quote_ident(v_name)) is not null;
        begin
            execute format('create table %I (like history including defaults)', v_name);
            -- Rows that came before their partition. Locked first, as attaching does anyway: a row written
            -- in between would make it fail, under load every time.
            lock table history_other in access exclusive mode;
            execute format(
                'with early as (delete from history_other where ended_at >= %1$L and ended_at < %2$L returning *) '
                'insert into %3$I select * from early',
                v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC', v_name);
            execute format('alter table history attach partition %I for values from (%L) to (%L)',
                v_name, v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC');
            v_done := v_done + 1;
        exception when lock_not_available or deadlock_detected or check_violation then
            null;
        end;
    end loop;
    for v_name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'history'::regclass and c.relname ~ '^history_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') < v_today - v_keep
    loop
        continue when history_kept_v1(to_date(right(v_name, 8), 'YYYYMMDD'));
        begin
            perform miss_history_v1(to_date(right(v_name, 8), 'YYYYMMDD'));
            execute format('drop table %I', v_name);
            v_done := v_done + 1;
        exception when lock_not_available or deadlock_detected then
            null;
        end;
    end loop;
    return v_done;
end
$$;

-- Part of upkeep: delete expired keys and removed channels that are empty, and add up the counts of dead
-- letters.
create or replace function "laneway".cleanup_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint;
    v_channel_ids uuid[];
begin
    if exists (select from dedupe d where d.expires_at <= v_now) then
        delete from dedupe d using (
            select k.queue, k.key from dedupe k where k.expires_at <= v_now
            order by k.expires_at limit p_limit for update skip locked) k
        where d.queue = k.queue and d.key = k.key;
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    -- The lock excludes lock_channels_v1: nobody relies on a row that is deleted here.
    -- (In this order only the index of these has them.)
    if (select c.id from channel c where c.closing order by c.id limit 1) is not null
        and pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.channels', 0)) then
        v_channel_ids := array(
            select c.id from channel c
            where c.closing and not exists (select from message m where m.channel_id = c.id offset 0)
            order by c.id limit p_limit for no key update skip locked);
        -- Locked now: read again. Where one snapshot shows no message, the token and the wakes of that
        -- snapshot add up to zero and are deleted together; a publish that commits later has its own wake.
        -- This reads all wakes: an index of theirs by channel would cost every publish more than that.
        with empty as materialized (
            select l.id from unnest(v_channel_ids) l(id)
            where not exists (select from message m where m.channel_id = l.id offset 0)
                and l.id <> all(array(select s.channel_id from stray s))
        ),
        tokens as (delete from token t where t.channel_id = any(array(select e.id from empty e))),
        wakes as (delete from wake w where w.channel_id = any(array(select e.id from empty e)))
        delete from channel c where c.id = any(array(select e.id from empty e));
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    if (select count(*) from (select from dead_count limit 100) x) = 100 then
        with gone as (
            delete from dead_count d where d.ctid = any(array(select k.ctid from dead_count k limit 10 * p_limit))
            returning d.queue, d.channel, d.n
        )
        insert into dead_total as t (queue, channel, n)
        select g.queue, g.channel, sum(g.n) from gone g group by g.queue, g.channel having sum(g.n) <> 0
        on conflict (queue, channel) do update set n = t.n + excluded.n;
        delete from dead_total t where t.n = 0;
    end if;
    return v_done + cleanup_events_v1(p_limit, v_now);
end
$$;

-- Part of upkeep: delete the events of listeners that have ended; after an hour the listeners themselves,
-- and what a transaction that was open for longer still wrote for them.
create or replace function "laneway".cleanup_events_v1(p_limit integer, p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
    v_done bigint;
begin
    if not exists (select from listener l where l.until <= p_now) then
        return 0;
    end if;
    delete from mail m where m.ctid = any(array(
        select k.ctid from listener l cross join lateral (
            select e.ctid from mail e where e.listener_id = l.id limit p_limit) k
        where l.until <= p_now limit p_limit));
    get diagnostics v_done = row_count;
    if v_done = 0 and exists (select from listener l where l.until <= p_now - interval '1 hour') then
        delete from mail m where m.ctid = any(array(
            select k.ctid from mail k where k.listener_id < (select min(l.id) from listener l) limit p_limit));
        delete from listener l where l.until <= p_now - interval '1 hour';
    end if;
    return v_done;
end
$$;
