-- Part of cancel, set policy, pause and remove: lock channel rows as a claim does, and wait for them;
-- channels that have no row yet get one.
--
-- Keeps: what the caller reads next is newer than anything the last owner wrote, which takes READ
-- COMMITTED. Locks: an advisory lock, shared, so that channel rows are not deleted (cleanup takes it alone),
-- then new rows and then all rows, both in id order.
create or replace function "laneway".lock_channels_v1(p_queues text[], p_names text[])
returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_channel_ids uuid[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'laneway: this needs READ COMMITTED, the transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Use a connection of its own.';
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended(current_schema() || '.channels', 0));
    insert into channel (id, queue, name)
    select channel_id_v1(x.queue, x.name), x.queue, x.name
    from unnest(p_queues, p_names) x(queue, name) order by 1
    on conflict do nothing;
    v_channel_ids := array(select channel_id_v1(x.queue, x.name) from unnest(p_queues, p_names) x(queue, name));
    perform from channel c where c.id = any(v_channel_ids) order by c.id for no key update;
end
$$;

-- set policy: replace the whole policy of some channels, in one transaction.
--
-- Keeps: a limit set now holds from the next claim on. Leases that were claimed without being
-- charged are charged here; those that another transaction has locked at this moment are charged too
-- and written to stray, for upkeep to settle. The charge goes into the token itself, not into a wake: a
-- claim that looked before would serve without having read it. Locks channel rows in id order; leases
-- with SKIP LOCKED.
create or replace function "laneway".set_policy_v1(
    p_queue text, p_channels text[], p_concurrency bigint[], p_rate double precision[], p_burst bigint[],
    p_backlog bigint[], p_weight double precision[], p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_limited uuid[];
    v_charged uuid[];
begin
    perform check_counts_v1('channels and limits', array[
            cardinality(p_channels), cardinality(p_concurrency), cardinality(p_rate), cardinality(p_burst), cardinality(p_backlog),
            cardinality(p_weight)]), check_names_v1('queue', array[p_queue]), check_names_v1('channel', p_channels),
        check_limits_v1(p_concurrency, p_rate, p_burst), check_numbers_v1('backlog', p_backlog, 0),
        check_numbers_v1('weight', p_weight, 0.01, 1000);
    perform lock_channels_v1(array_fill(p_queue, array[cardinality(p_channels)]), p_channels);

    v_limited := array(
        select channel_id_v1(p_queue, x.name) from unnest(p_channels, p_concurrency) x(name, concurrency)
        where x.concurrency is not null);
    update channel c set
        concurrency = x.concurrency, rate = x.rate, burst = x.burst, backlog = x.backlog, weight = x.weight,
        closing = false
    from unnest(p_channels, p_concurrency, p_rate, p_burst, p_backlog, p_weight)
        x(name, concurrency, rate, burst, backlog, weight)
    where c.id = channel_id_v1(p_queue, x.name);

    if cardinality(v_limited) > 0 then
        with open as (
            select l.message_id from lease l where l.channel_id = any(v_limited) and not l.counted
                -- A row in stray is charged already.
                and not exists (select from stray s where s.message_id = l.message_id and s.fence = l.fence)
            order by l.message_id for update skip locked
        ),
        charged as (
            update lease l set counted = true from open o where l.message_id = o.message_id returning l.channel_id
        )
        select array_agg(c.channel_id) into v_charged from charged c;
        with late as (
            insert into stray (message_id, fence, channel_id, queue, channel)
            select l.message_id, l.fence, l.channel_id, c.queue, c.name
            from lease l join channel c on c.id = l.channel_id
            where l.channel_id = any(v_limited) and not l.counted
                and not exists (select from stray s where s.message_id = l.message_id and s.fence = l.fence)
            returning channel_id
        )
        select v_charged || array_agg(l.channel_id) into v_charged from late l;
    end if;

    with charge as materialized (
        select x.id, count(*) as leased from unnest(v_charged) x(id) group by x.id
    ),
    -- Of the starts under another rate, only this is kept: that the burst is used up.
    latest as materialized (
        select channel_id_v1(p_queue, x.name) as id, v_now + ceil(x.burst / x.rate * 1e6) * interval '1 microsecond' as tat
        from unnest(p_channels, p_rate, p_burst) x(name, rate, burst) where x.rate is not null
    ),
    changed as materialized (
        select coalesce(c.id, l.id) as id, coalesce(c.leased, 0) as leased, l.tat
        from charge c full join latest l on l.id = c.id
        where c.id is not null or exists (select from token t where t.channel_id = l.id and t.tat > l.tat)
    ),
    old as (
        delete from token t where t.channel_id in (select x.id from changed x) returning t.*
    )
    insert into token (channel_id, version, turn, n, leased, tat, credit, skips, queue, pri, due, mid,
        lanes, slots, turns, used, booked, cost, since)
    select x.id, coalesce(o.version, 0) + 1, o.turn, coalesce(o.n, 0), coalesce(o.leased, 0) + x.leased, least(o.tat, x.tat),
        coalesce(o.credit, 0), coalesce(o.skips, 0), p_queue,
        coalesce(o.pri, '{}'), coalesce(o.due, '{}'), coalesce(o.mid, '{}'), o.lanes, o.slots, o.turns, o.used, o.booked, o.cost, o.since
    from changed x left join old o on o.channel_id = x.id;

    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select v_now, c.id, v_now, 0, 0, 0, c.queue, c.name,
        case when c.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from channel c where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    perform notify_workers_v1(array[p_queue], v_now);
end
$$;

-- limit: change the limits of a channel that p_named names (null removes one) and no others, in a
-- transaction of our own; returns the policy that holds now.
--
-- Keeps: of two callers that change different limits at the same time, both changes hold, because
-- the other limits are read under the channel's lock. A new rate has a burst of its own, one second's
-- worth, unless one is named. Writes nothing and returns no row if a burst has no rate to go with, or
-- would last longer than a century. Locks like set_policy_v1.
create or replace function "laneway".limit_v1(
    p_queue text, p_channel text, p_named text[], p_concurrency bigint, p_rate double precision,
    p_burst bigint, p_backlog bigint, p_weight double precision, p_now timestamptz default null
) returns table (
    concurrency bigint, rate double precision, burst bigint, backlog bigint, weight double precision,
    paused boolean, closing boolean, paused_until timestamptz, throttled boolean)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_id uuid := channel_id_v1(p_queue, p_channel);
    v_old channel;
    v_rate double precision;
    v_burst bigint;
begin
    perform check_limits_v1(array[p_concurrency], array[p_rate], '{}'), check_names_v1('queue', array[p_queue]),
        check_names_v1('channel', array[p_channel]);
    perform lock_channels_v1(array[p_queue], array[p_channel]);
    select c.* into strict v_old from channel c where c.id = v_id;

    v_rate := case when 'rate' = any(p_named) then p_rate else v_old.rate end;
    v_burst := case
        when 'burst' = any(p_named) then p_burst when 'rate' = any(p_named) then null else v_old.burst end;
    if v_burst is null and v_rate is not null then
        v_burst := greatest(1, ceil(v_rate));
    end if;
    if v_burst is not null and (v_rate is null or v_burst / v_rate > 100 * 366 * 86400.0) then
        return;
    end if;

    perform set_policy_v1(
        p_queue, array[p_channel],
        array[case when 'concurrency' = any(p_named) then p_concurrency else v_old.concurrency end],
        array[v_rate], array[v_burst],
        array[case when 'backlog' = any(p_named) then p_backlog else v_old.backlog end],
        array[case when 'weight' = any(p_named) then p_weight else v_old.weight end], p_now);
    return query
    select c.concurrency, c.rate, c.burst, c.backlog, c.weight,
        c.paused and coalesce(c.paused_until > coalesce(p_now, clock_timestamp()), true), c.closing, c.paused_until, c.throttled
    from channel c where c.id = v_id;
end
$$;

-- pause, resume: nothing is claimed from paused channels, for p_length if there is one; publishing goes on.
-- A pause for a time leaves a wake for its end, at which the next claim visits the channel.
-- Locks channel rows in id order.
create or replace function "laneway".pause_v1(
    p_queue text, p_channels text[], p_paused boolean, p_length interval default null, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
begin
    perform check_names_v1('queue', array[p_queue]), check_names_v1('channel', p_channels),
        check_lengths_v1('duration', array[p_length]);
    perform lock_channels_v1(array_fill(p_queue, array[cardinality(p_channels)]), p_channels);
    update channel c set paused = p_paused, paused_until = case when p_paused then v_now + p_length end, throttled = false
    where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select e.at, c.id, v_now, 0, 0, 0, c.queue, c.name,
        case when c.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from (values (v_now), (case when p_paused then v_now + p_length end)) e(at) cross join channel c
    where e.at is not null and c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    perform notify_workers_v1(array[p_queue], v_now);
end
$$;

-- throttle: nothing is claimed from the channel for p_length; a pause that lasts longer stays as it is.
-- Locks like pause_v1.
create or replace function "laneway".throttle_v1(
    p_queue text, p_channel text, p_length interval, p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_id uuid := channel_id_v1(p_queue, p_channel);
begin
    perform check_names_v1('queue', array[p_queue]), check_names_v1('channel', array[p_channel]),
        check_lengths_v1('length', array[p_length]);
    perform lock_channels_v1(array[p_queue], array[p_channel]);
    if exists (
        select from channel c
        where c.id = v_id and c.paused and coalesce(c.paused_until >= v_now + p_length, true))
    then
        return;
    end if;
    perform pause_v1(p_queue, array[p_channel], true, p_length, v_now);
    update channel c set throttled = true where c.id = v_id;
end
$$;

-- remove: take no new messages in these channels; when the last one has ended, upkeep deletes the
-- channel with its policy, and the name is free again. A paused channel is resumed to drain.
-- Locks channel rows in id order.
create or replace function "laneway".remove_v1(
    p_queue text, p_channels text[], p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
begin
    perform pause_v1(p_queue, p_channels, false, null, p_now);
    update channel c set closing = true
    where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
end
$$;
