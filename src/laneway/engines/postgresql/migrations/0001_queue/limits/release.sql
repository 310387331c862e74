-- Part of claims, in queues in which messages wait for limits: start as many of them as may start, of channels in turn,
-- by weight, and in each by (priority, due, publish order). They need not go through their channels' turns.
--
-- Keeps: what admit_v1 keeps. Channels are served by what they have had (pass), the lowest first; a channel is charged
-- for what starts. A queue that is paused is left out, as in claim_v1. It writes nothing if nothing may start.
--
-- Locks: the limits' rows in order of their names, if a look without locks finds that something may start, and then
-- lanes and their channels with SKIP LOCKED. So it waits for limits only, for 250 ms: then it starts nothing. Messages
-- of channels with limits of their own, and of queues with a paused kind, are only made due: claim_v1 takes them.
--
-- p_kinds: of these kinds, null: all. Answers as claim_v1 does; in the last row, answer: how many were made due,
-- contended: whether anything waits, look_again: when to look again if nothing else happens.
create or replace function "laneway".start_limited_v1(
    p_queues text[], p_kinds text[], p_want integer, p_lease interval, p_worker text, p_now timestamptz default null
) returns setof "laneway".claimed_v1
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set lock_timeout = '250ms'
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
    v_queues text[];
    v_direct boolean;
    v_sets text[] := '{}';
    v_names text[];
    v_limits text;
    v_room bigint;
    v_again timestamptz;
    v_pass double precision;
    v_picked record;
    v_fence bigint;
    v_start bigint[] := '{}';
    v_due bigint[] := '{}';
    v_left bigint := p_want;
    v_end "laneway".claimed_v1;
begin
    perform check_names_v1('queue', p_queues), check_numbers_v1('limit', array[coalesce(p_want, -1)], 0, 10000),
        check_leases_v1(array[p_lease]), check_names_v1('worker', array[p_worker]), check_names_v1('kind', p_kinds, true);
    v_end.contended := false;
    for v_limits in
        select q.limits from (
            select distinct k.limits from limit_queue k where k.queue = any(p_queues)) q
        -- Now and then in any order: how much channels have had says nothing about those of other limits.
        order by case when random() < 0.25 then random() else 0 end,
            (select l.pass from limit_lane l where l.limits = q.limits and l.waiting order by l.pass limit 1), q.limits
    loop
        continue when not exists (select from limit_lane l where l.limits = v_limits and l.waiting and l.queue = any(p_queues));
        v_end.contended := true;
        select r.room, r.again into v_room, v_again from limit_room_v1(v_limits, v_now) r;
        v_end.look_again := least(v_end.look_again, v_again);
        if v_room > 0 then
            v_sets := v_sets || v_limits;
        end if;
    end loop;
    if v_end.contended and v_end.look_again is null then
        v_end.look_again := v_now + interval '250 milliseconds';
    end if;

    if cardinality(v_sets) > 0 then
        v_names := array(select distinct n from unnest(v_sets) s cross join unnest(string_to_array(s, ',')) n order by n);
        begin
            -- One that was removed comes back without limits: whoever sets it waits for this.
            insert into shared_limit (name) select n from unnest(v_names) n
            where not exists (select from shared_limit l where l.name = n) order by n
            on conflict do nothing;
            perform from shared_limit l where l.name = any(v_names) order by l.name for update;
        exception when lock_not_available then
            v_sets := '{}';
        end;
    end if;
    if cardinality(v_sets) > 0 then
        v_queues := array(
            select q.name from unnest(p_queues) q(name)
            where pg_try_advisory_xact_lock_shared(hashtextextended(q.name, 'pause'::regclass::oid::bigint)));
        -- Statements of their own: they see what was committed while this waited.
        v_now := write_time_v1(p_now);
        v_queues := array(
            select q.name from unnest(v_queues) q(name) where not exists (
                select from pause p where p.queue = q.name and p.kind is null and (p.until is null or p.until > v_now)));
        v_direct := not exists (
            select from pause p where p.queue = any(v_queues) and p.kind is not null and (p.until is null or p.until > v_now));
        perform end_limit_leases_v1(v_names);
        v_fence := nextval('fence');
        foreach v_limits in array v_sets loop
            exit when v_left <= 0;
            select least(r.room, v_left) into v_room from limit_room_v1(v_limits, v_now, true) r;
            v_pass := null;
            while v_room > 0 loop
                -- Not more than a hundred at a time: it looks at as many channels.
                select * into v_picked from pick_limited_v1(v_limits, v_queues, p_kinds, least(v_room, 100), v_direct, v_now);
                exit when v_picked.looked = 0;
                v_pass := least(v_pass, v_picked.pass);
                v_due := v_due || v_picked.due;
                v_room := v_room - cardinality(v_picked.due) - cardinality(v_picked.start);
                v_left := v_left - cardinality(v_picked.due) - cardinality(v_picked.start);
                if cardinality(v_picked.start) > 0 then
                    v_start := v_start || v_picked.start;
                    insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
                    select m.id, v_fence, v_now + p_lease, v_now, m.channel_id, false, p_worker
                    from unnest(v_picked.start) x(id) join lateral (
                        select k.id, k.channel_id from message k where k.id = x.id offset 0) m on true;
                    insert into limit_lease (name, message_id, fence, round)
                    select l.name, x.id, v_fence, l.round from unnest(v_picked.start) x(id)
                    cross join shared_limit l where l.name = any(string_to_array(v_limits, ','))
                    on conflict (name, message_id) do update set fence = excluded.fence, round = excluded.round, outcome = null;
                    -- Rounded up to the clock's step: rounding to the nearest would let the rate creep over.
                    update shared_limit l set tat = greatest(l.tat, v_now)
                        + cardinality(v_picked.start) * ceil(1e6 / l.rate - 1e-3) * interval '1 microsecond'
                    where l.name = any(string_to_array(v_limits, ',')) and l.rate is not null;
                    return query select * from started_limited_v1(v_picked.start, v_fence, v_now);
                end if;
            end loop;
            if v_pass is not null then
                perform advance_limit_clock_v1(v_limits, v_pass, v_now);
            end if;
        end loop;
    end if;

    if cardinality(v_due) > 0 then
        perform make_due_v1(v_due, p_now);
    end if;
    if cardinality(v_start) > 0 then
        v_end.claimed_at := v_now;
        v_end.until := v_now + p_lease;
        if exists (select from listener l where l.until > v_now) then
            perform add_events_v1(array['claimed'], v_start, v_now);
        end if;
    end if;
    v_end.answer := cardinality(v_due)::text;
    return next v_end;
end
$$;

-- Part of start_limited_v1, which holds limits, lanes and channels and has leased the messages: they wait no more, and
-- nobody counts or wakes them. Answers them in the order in which they were chosen.
create or replace function "laneway".started_limited_v1(p_ids bigint[], p_fence bigint, p_now timestamptz)
returns setof "laneway".claimed_v1
language plpgsql
as $$
#variable_conflict use_column
begin
    return query
    with waited as materialized (
        select m.id, x.number, m.channel_id, m.due as parked, least(w.due, p_now) as due, m.priority, m.queue, m.channel,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from unnest(p_ids) with ordinality x(id, number)
        join lateral (select k.due from limit_wait k where k.message_id = x.id offset 0) w on true
        join lateral (select k.* from message k where k.id = x.id offset 0) m on true
    ),
    forgotten as (
        delete from limit_wait w where w.message_id = any(p_ids)
    ),
    -- The wake of its own, see wait_for_limits_v1.
    unwoken as (
        delete from wake k using waited w
        where k.queue = w.queue and k.at = w.parked and k.message_id = w.id and k.n = 1
        returning k.message_id
    ),
    -- Somebody has read that wake and counts the message: one fewer, just after its time.
    fewer as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select w.parked + interval '1 microsecond', w.channel_id, w.parked, w.id, -1, w.priority, w.queue, w.channel, w.lane
        from waited w where not exists (select from unwoken u where u.message_id = w.id)
    ),
    moved as (
        update message m set due = w.due from waited w where m.id = w.id returning m.*, w.number
    )
    select m.id, p_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        date_part('epoch', m.due), date_part('epoch', m.published_at),
        date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
        substr(m.key, 17), m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean, null::bigint
    from moved m order by m.number;
end
$$;

-- Part of start_limited_v1, which has locked the channels: messages that waited for their limits are due again,
-- from the time on at which they were.
create or replace function "laneway".make_due_v1(p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    -- Read once the channels are locked: later than the time of every claim that owned them.
    v_now timestamptz := write_time_v1(p_now);
begin
    -- Those that ended while they waited.
    delete from limit_wait w where w.message_id = any(p_ids)
        and not exists (select from message m where m.id = w.message_id);
    with waited as materialized (
        select m.id, m.channel_id, m.due as parked, least(w.due, v_now) as due, m.priority, m.queue, m.channel,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from limit_wait w join message m on m.id = w.message_id
        where w.message_id = any(p_ids) and m.due > v_now
            and not exists (select from lease l where l.message_id = m.id)
    ),
    moved as (
        update message m set due = w.due from waited w where m.id = w.id
    ),
    -- The wake of its own, see wait_for_limits_v1.
    unwoken as (
        delete from wake k using waited w
        where k.queue = w.queue and k.at = w.parked and k.message_id = w.id and k.n = 1
        returning k.message_id
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select v_now, w.channel_id, w.due, w.id, 1, w.priority, w.queue, w.channel, w.lane from waited w
    union all
    -- Somebody has read that wake and counts the message: one fewer, just after its time.
    select w.parked + interval '1 microsecond', w.channel_id, w.parked, w.id, -1, w.priority, w.queue, w.channel, w.lane
    from waited w where not exists (select from unwoken u where u.message_id = w.id);
end
$$;

-- How many messages may start behind a set of limits, and if none, when to look again. Its caller has the settings of
-- start_limited_v1. p_locked: they are locked; what has ended since then is left to whoever locks them next.
create or replace function "laneway".limit_room_v1(
    p_limits text, p_now timestamptz, p_locked boolean default false, out room bigint, out again timestamptz
)
language plpgsql
as $$
begin
    select greatest(0, coalesce(min(least(x.slots - x.coming, floor(x.starts + 1e-9)::bigint - x.coming, x.rest)), 1000000)), max(case
        when x.rest = 0 then x.rest_until
        when x.starts < 1 then p_now + ceil((1 - x.starts) / x.rate * 1e6) * interval '1 microsecond'
        when x.slots <= x.coming or floor(x.starts + 1e-9) <= x.coming then p_now + interval '250 milliseconds' end)
    into room, again
    from (
        select l.rate, l.rest_until, case when l.rest_until > p_now then 0 end as rest,
            l.burst - date_part('epoch', greatest(l.tat, p_now) - p_now) * l.rate as starts,
            case when l.concurrency is not null then l.concurrency
                - (select count(*) from limit_lease k where k.name = l.name
                    and (p_locked or exists (select from lease e where e.message_id = k.message_id and e.fence = k.fence offset 0))) end as slots,
            -- Made due, and about to start.
            (select count(*) from limit_wait w where w.released > p_now - interval '1 second'
                and l.name = any(string_to_array(w.limits, ','))) as coming
        from unnest(string_to_array(p_limits, ',')) n(name) join shared_limit l on l.name = n.name
    ) x;
end
$$;

-- Part of start_limited_v1, which has locked the limits: one round over the channels that wait for a set of them. Those
-- that have had the least come first, each as often as its share says; one that could start nothing for long, as it was
-- paused, makes up for what the others had in the last minute and no more.
--
-- Messages that have ended, lapsed or are due by themselves wait no more. Answers at how many channels it looked, the
-- lowest pass of what starts, which messages are to be leased now, and which are to be made due, because their channels
-- have limits of their own.
create or replace function "laneway".pick_limited_v1(
    p_limits text, p_queues text[], p_kinds text[], p_room bigint, p_direct boolean, p_now timestamptz,
    out looked bigint, out pass double precision, out start bigint[], out due bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_empty uuid[];
begin
    with lane as materialized (
        select l.ctid as tid, l.channel_id, greatest(l.pass, (select k.passes[1] from limit_clock k where k.limits = p_limits)) as pass,
            c.weight, c.concurrency,
            not p_direct or c.concurrency is not null or c.rate is not null as gated
        from limit_lane l join channel c on c.id = l.channel_id
        where l.limits = p_limits and l.waiting and l.queue = any(p_queues)
            and not (c.paused and coalesce(c.paused_until > p_now, true))
            and (p_kinds is null or exists (
                select from limit_wait w where w.limits = p_limits and w.channel_id = l.channel_id
                    and w.released is null and w.kind = any(p_kinds) offset 0))
            -- A channel with limits of its own: what is due there first starts.
            and (c.concurrency is null and c.rate is null or not exists (
                select from limit_wait w where w.channel_id = l.channel_id and w.released > p_now - interval '1 second' offset 0))
        order by l.pass, l.channel_id limit p_room
        for update of l skip locked for no key update of c skip locked
    ),
    share as materialized (
        select s.tid, s.channel_id, s.weight, s.gated, min(s.turn) as turn, least(count(*), max(s.concurrency)) as n
        from (
            select l.tid, l.channel_id, l.weight, l.concurrency, l.gated, l.pass + j / l.weight as turn
            from lane l cross join generate_series(0, p_room - 1) j
            order by turn, l.channel_id limit p_room
        ) s group by s.tid, s.channel_id, s.weight, s.gated
    ),
    seen as materialized (
        -- With other limits since it began to wait, it has to be asked for again.
        select s.channel_id, s.weight, s.turn, w.message_id, w.number,
            s.gated or m.headers -> 'laneway-limits' is distinct from to_jsonb(string_to_array(p_limits, ',')) as gated,
            coalesce(m.due > p_now and coalesce(m.expires_at > p_now, true), false)
                and not exists (select from lease e where e.message_id = w.message_id offset 0) as waits
        from share s cross join lateral (
            select f.message_id, row_number() over () as number from (
                select k.message_id from limit_wait k
                where k.limits = p_limits and k.channel_id = s.channel_id and k.released is null
                    and (p_kinds is null or k.kind = any(p_kinds))
                order by k.priority desc, k.due, k.message_id limit s.n) f
        ) w
        left join lateral (select k.due, k.expires_at, k.headers from message k where k.id = w.message_id offset 0) m on true
    ),
    marked as (
        update limit_wait w set released = p_now, charge = 1 / s.weight
        from seen s where w.message_id = s.message_id and s.waits and s.gated
    ),
    gone as (
        delete from limit_wait w where w.message_id = any(array(select s.message_id from seen s where not s.waits))
    ),
    served as (
        update limit_lane l set pass = h.turn + coalesce(p.n, 0) / h.weight, used = p_now,
            waiting = exists (
                select from limit_wait w where w.limits = p_limits and w.channel_id = l.channel_id and w.released is null
                    and w.message_id <> all(array(select x.message_id from seen x)) offset 0)
        from share h
        left join (select x.channel_id, count(*) as n from seen x where x.waits group by x.channel_id) p on p.channel_id = h.channel_id
        where l.ctid = h.tid
        returning l.channel_id, l.waiting
    )
    select (select count(*) from share), array(select l.channel_id from served l where not l.waiting),
        min(s.turn) filter (where s.waits), coalesce(array_agg(s.message_id order by s.turn, s.channel_id, s.number) filter (where s.waits and not s.gated), '{}'),
        coalesce(array_agg(s.message_id order by s.turn, s.channel_id, s.number) filter (where s.waits and s.gated), '{}')
    into looked, v_empty, pass, start, due from seen s;
    -- A sweep locks lanes and no limits: what it added since that statement began is seen by the next one only.
    if cardinality(v_empty) > 0 then
        update limit_lane l set waiting = true
        where l.limits = p_limits and l.channel_id = any(v_empty) and exists (
            select from limit_wait w where w.limits = p_limits and w.channel_id = l.channel_id and w.released is null
                and w.message_id <> all(start) offset 0);
    end if;
end
$$;

-- Nothing starts behind the limit for p_length; a rest that lasts longer stays as it is.
create or replace function "laneway".rest_shared_limit_v1(p_name text, p_length interval, p_now timestamptz default null)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    select check_names_v1('limit', array[p_name]), check_lengths_v1('rest', array[p_length]);
    insert into shared_limit (name, rest_until) values (p_name, time_v1(p_now) + p_length)
    on conflict (name) do update set rest_until = greatest(shared_limit.rest_until, excluded.rest_until)
$$;

-- Forget a limit: what names it is not held back by it any more. Answers whether there was one.
create or replace function "laneway".remove_shared_limit_v1(p_name text)
returns boolean
language sql
set search_path = "laneway", pg_temp
as $$
    with gone as (delete from shared_limit l where l.name = p_name returning l.name)
    select exists (select from gone)
$$;

-- Which of these channels wait for shared limits, and for which.
create or replace function "laneway".limited_channels_v1(p_queue text, p_channels text[])
returns table (channel text, limits text)
language sql stable
set search_path = "laneway", pg_temp
as $$
    select distinct on (x.name) x.name, l.limits
    from unnest(p_channels) x(name)
    join limit_lane l on l.channel_id = channel_id_v1(p_queue, x.name) and l.waiting
    order by x.name, l.limits
$$;

-- Part of upkeep: lanes in which nothing waits and that started nothing for a minute, and what is known of messages that
-- were made due a while ago.
--
-- Keeps: lanes are found by limit_clock or by limit_queue: one of both stays until the last lane is gone.
--
-- Locks a set's limits and its rows of limit_queue before these are forgotten: admit_v1 holds the limits, and
-- sweep_limited_v1 these rows. What others hold is left for the next time.
create or replace function "laneway".cleanup_limits_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_limits text;
    v_locked bigint;
    v_count bigint;
begin
    -- So that what is shown of them is true if nothing more is claimed.
    if exists (select from shared_limit l where l.adapt_min is not null or l.breaker_window is not null) then
        perform end_limit_leases_v1(array(
            select l.name from shared_limit l
            where (l.adapt_min is not null or l.breaker_window is not null) and exists (
                select from limit_lease k where k.name = l.name
                    and not exists (select from lease e where e.message_id = k.message_id and e.fence = k.fence))
            order by l.name for update skip locked));
    end if;
    if not exists (select from limit_clock) and not exists (select from limit_queue) then
        return 0;
    end if;
    with gone as (
        delete from limit_wait w where w.message_id = any(array(
            select k.message_id from limit_wait k where k.released < v_now - interval '1 minute' order by k.released limit p_limit))
        returning w.message_id
    )
    select count(*) into v_count from gone;
    -- Some sets, whichever: their names are read, as every claim behind a limit does, and no more of the others.
    for v_limits in
        select s.limits from (select q.limits from limit_queue q union select c.limits from limit_clock c) s
        order by random() limit greatest(p_limit / 10, 1)
    loop
        with old as materialized (
            select l.channel_id, l.pass <= coalesce((
                select k.pass from limit_lane k where k.limits = v_limits and k.waiting order by k.pass limit 1), 'infinity') as idle
            from limit_lane l
            where l.limits = v_limits and not l.waiting and l.used < v_now - interval '1 minute'
            order by l.used limit p_limit for update skip locked
        ),
        -- The others stay for now, behind those that were not looked at.
        kept as (
            update limit_lane l set used = v_now
            where l.limits = v_limits and l.channel_id = any(array(select o.channel_id from old o where not o.idle))
        )
        delete from limit_lane l
        where l.limits = v_limits and l.channel_id = any(array(select o.channel_id from old o where o.idle));
        delete from limit_clock c where c.limits = any(array(
            select k.limits from limit_clock k
            where k.limits = v_limits and k.times[cardinality(k.times)] < v_now - interval '1 minute'
                and not exists (select from limit_lane l where l.limits = v_limits)
            for update skip locked));
        -- A queue of which nothing waits, unless idle lanes would not be found any more.
        continue when not exists (
            select from limit_queue q where q.limits = v_limits
                and not exists (select from limit_lane l where l.limits = q.limits and l.waiting and l.queue = q.queue));
        continue when exists (select from limit_lane l where l.limits = v_limits and not l.waiting)
            and not exists (select from limit_clock c where c.limits = v_limits);
        continue when (
            select count(*) from (
                select from shared_limit l where l.name = any(string_to_array(v_limits, ',')) for update skip locked) x
        ) < cardinality(string_to_array(v_limits, ','));
        select count(*) into v_locked from (select from limit_queue q where q.limits = v_limits for update skip locked) x;
        continue when v_locked < (select count(*) from limit_queue q where q.limits = v_limits);
        delete from limit_queue q where q.limits = v_limits
            and not exists (select from limit_lane l where l.limits = q.limits and l.waiting and l.queue = q.queue);
        perform end_limit_leases_v1(string_to_array(v_limits, ','));
    end loop;
    return v_count;
end
$$;
