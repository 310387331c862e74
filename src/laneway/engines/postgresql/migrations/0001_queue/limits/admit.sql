-- Part of claims: of messages that were just claimed, those whose limits let them start. The others wait: they are
-- given back for an hour, uncounted, and start_limited_v1 starts them when their turn comes.
--
-- Keeps: at most `concurrency` leases behind a limit, counting leases that ran out and were not yet taken back, and
-- `burst + window x rate` starts, by the time of their claims. All limits of a message let it start, or none is
-- charged. What waits for the same limits is not passed by what comes later, nor what waits for others of them and
-- could start.
--
-- Locks: the limits' rows in order of their names, then lanes in order, then the leases, which are the caller's.
-- Whoever holds any of these waits for no channel. p_limits: the names of each message, sorted, with commas between.
-- Answers the messages that may start.
create or replace function "laneway".admit_v1(
    p_ids bigint[], p_fences bigint[], p_limits text[], p_now timestamptz default null
) returns setof bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_names text[] := array(
        select distinct n.name from unnest(p_limits) x(limits) cross join unnest(string_to_array(x.limits, ',')) n(name) order by n.name);
    v_concurrency bigint[];
    v_rate double precision[];
    v_burst bigint[];
    v_tat timestamptz[];
    v_rest timestamptz[];
    v_running bigint[];
    v_round bigint[];
    -- How many were made due behind each limit and are about to start: theirs are not for those who come now.
    v_coming bigint[];
    v_waiting text[];
    v_mine integer[];
    v_one integer;
    v_free boolean;
    v_message record;
    v_start bigint[] := '{}';
    v_start_fences bigint[] := '{}';
    v_start_limits text[] := '{}';
    -- Those of them that were not made due: their lanes are charged now.
    v_at_once bigint[] := '{}';
    v_wait bigint[] := '{}';
    v_wait_fences bigint[] := '{}';
begin
    perform check_names_v1('limit', array(
        select n from unnest(p_limits) x(limits) cross join unnest(string_to_array(x.limits, ',')) n));
    if exists (
        select from unnest(p_limits) x(limits)
        where (select count(*) <> count(distinct n) from unnest(string_to_array(x.limits, ',')) n))
    then
        perform invalid_v1('limit', 'is named twice by one message');
    end if;
    v_now := write_time_v1(p_now);
    insert into shared_limit (name) select n from unnest(v_names) n
    where not exists (select from shared_limit l where l.name = n) order by n
    on conflict do nothing;
    perform from shared_limit l where l.name = any(v_names) order by l.name for update;
    -- Statements of their own: they see what was committed while this waited.
    perform end_limit_leases_v1(v_names);
    select array_agg(l.concurrency order by l.name), array_agg(l.rate order by l.name), array_agg(l.burst order by l.name),
        array_agg(l.tat order by l.name), array_agg(l.rest_until order by l.name),
        array_agg(l.round order by l.name), array_agg((select count(*) from limit_lease k where k.name = l.name) order by l.name),
        array_agg((select count(*) from limit_wait w where w.released > v_now - interval '1 second'
            and w.message_id <> all(p_ids) and l.name = any(string_to_array(w.limits, ','))) order by l.name)
    into v_concurrency, v_rate, v_burst, v_tat, v_rest, v_round, v_running, v_coming
    from shared_limit l where l.name = any(v_names);
    v_waiting := array(
        select x.limits from (select distinct k.limits from unnest(p_limits) k(limits)) x
        where exists (select from limit_lane l where l.limits = x.limits and l.waiting)
            or exists (
                select from (select distinct k.limits from limit_queue k where k.limits <> x.limits) q
                where string_to_array(q.limits, ',') && string_to_array(x.limits, ',')
                    and exists (select from limit_lane l where l.limits = q.limits and l.waiting)
                    and (select r.room from limit_room_v1(q.limits, v_now) r) > 0));

    for v_message in
        -- What was made due stands for the first of its lane: one that was given back may come before it. Then one
        -- of each channel, then the next: a claim takes several of a channel at once.
        select f.*, f.rank <= f.due_now as released
        from (
            select x.id, x.fence, x.limits, x.number, l.claimed_at, l.channel_id,
                w.released is not null as charged,
                count(w.released) over (partition by x.limits, l.channel_id) as due_now,
                row_number() over (partition by x.limits, l.channel_id order by m.priority desc, m.due, x.id) as rank
            from unnest(p_ids, p_fences, p_limits) with ordinality x(id, fence, limits, number)
            join lateral (select k.claimed_at, k.channel_id from lease k where k.message_id = x.id and k.fence = x.fence offset 0) l on true
            join lateral (select k.priority, k.due from message k where k.id = x.id offset 0) m on true
            left join lateral (select k.released from limit_wait k where k.message_id = x.id offset 0) w on true
        ) f
        order by f.rank > f.due_now, f.rank, f.number
    loop
        v_mine := array(select array_position(v_names, n) from unnest(string_to_array(v_message.limits, ',')) n);
        v_free := v_message.released or v_message.limits <> all(v_waiting);
        foreach v_one in array v_mine loop
            v_free := v_free
                and coalesce(v_running[v_one] + case when v_message.released then 0 else v_coming[v_one] end < v_concurrency[v_one], true)
                and coalesce(v_rest[v_one] <= v_message.claimed_at, true)
                and coalesce(v_burst[v_one]
                    - date_part('epoch', greatest(v_tat[v_one], v_message.claimed_at) - v_message.claimed_at) * v_rate[v_one] + 1e-9
                    >= 1 + case when v_message.released then 0 else v_coming[v_one] end, true);
        end loop;
        if v_free then
            foreach v_one in array v_mine loop
                v_running[v_one] := v_running[v_one] + 1;
                v_tat[v_one] := greatest(v_tat[v_one], v_message.claimed_at)
                    + ceil(1e6 / v_rate[v_one] - 1e-3) * interval '1 microsecond';
            end loop;
            v_start := v_start || v_message.id;
            v_start_fences := v_start_fences || v_message.fence;
            v_start_limits := v_start_limits || v_message.limits;
            if not v_message.charged then
                v_at_once := v_at_once || v_message.id;
            end if;
        else
            -- Those of the same limits that come later wait behind it.
            v_waiting := v_waiting || v_message.limits;
            v_wait := v_wait || v_message.id;
            v_wait_fences := v_wait_fences || v_message.fence;
        end if;
    end loop;

    if cardinality(v_start) > 0 then
        insert into limit_lease (name, message_id, fence, round)
        select n.name, x.id, x.fence, v_round[array_position(v_names, n.name)]
        from unnest(v_start, v_start_fences, v_start_limits) x(id, fence, limits)
        cross join unnest(string_to_array(x.limits, ',')) n(name)
        on conflict (name, message_id) do update set fence = excluded.fence, round = excluded.round, outcome = null;
        update shared_limit l set tat = x.tat from unnest(v_names, v_tat) x(name, tat)
        where l.name = x.name and l.rate is not null;
        delete from limit_wait w where w.message_id = any(v_start);
        if cardinality(v_at_once) > 0 then
            perform charge_lanes_v1(v_at_once, v_start, v_start_limits, v_now);
        end if;
    end if;
    if cardinality(v_wait) > 0 then
        perform wait_for_limits_v1(v_wait, v_wait_fences, p_ids, p_limits, v_now);
    end if;
    return query select unnest(v_start);
end
$$;

-- Part of admit_v1, which holds the limits: these messages wait for theirs.
create or replace function "laneway".wait_for_limits_v1(
    p_ids bigint[], p_fences bigint[], p_all bigint[], p_limits text[], p_now timestamptz
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    -- Who was made due and did not start is not charged for it.
    update limit_lane l set pass = l.pass - c.charge
    from (
        select w.limits, w.channel_id, sum(w.charge) as charge from limit_wait w
        where w.message_id = any(p_ids) and w.charge > 0 group by w.limits, w.channel_id
    ) c
    where l.limits = c.limits and l.channel_id = c.channel_id;
    with parked as materialized (
        select m.id, x.limits, m.channel_id, m.queue, m.kind, m.priority, m.due, m.published_at
        from unnest(p_all, p_limits) x(id, limits)
        join lateral (select k.* from message k where k.id = x.id offset 0) m on true
        where x.id = any(p_ids)
    ),
    lane as (
        insert into limit_lane (limits, channel_id, queue, pass, waiting, used)
        select k.limits, k.channel_id, min(k.queue), limit_wait_pass_v1(k.limits, min(greatest(k.due, k.published_at)), p_now), true, p_now
        from parked k group by k.limits, k.channel_id order by k.limits, k.channel_id
        on conflict (limits, channel_id) do update
        set waiting = true, pass = greatest(limit_lane.pass, excluded.pass), used = excluded.used
        where not limit_lane.waiting
    ),
    known as (
        insert into limit_queue (queue, limits)
        select distinct p.queue, p.limits from parked p
        where not exists (select from limit_queue q where q.queue = p.queue and q.limits = p.limits)
    )
    -- One that waited before keeps its place.
    insert into limit_wait (message_id, limits, channel_id, kind, priority, due)
    select p.id, p.limits, p.channel_id, p.kind, p.priority, p.due from parked p
    on conflict (message_id) do update set limits = excluded.limits, released = null, charge = 0;
    -- Each until a time of its own, by which its wake is found again.
    perform give_back_v1(p_ids, p_fences, array(
        select interval '1 hour' + n * interval '1 microsecond' from generate_series(1, cardinality(p_ids)) n order by n), p_now);
end
$$;

-- Part of admit_v1, which holds the limits: of messages that start, these have not waited. They are charged to their
-- lanes as what waited is, so that who is found later finds what it has missed.
create or replace function "laneway".charge_lanes_v1(p_ids bigint[], p_all bigint[], p_limits text[], p_now timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    v_set record;
begin
    for v_set in
        with started as materialized (
            select x.limits, m.channel_id, m.queue, c.weight, count(*) / c.weight as charge,
                greatest((select l.pass from limit_lane l where l.limits = x.limits and l.channel_id = m.channel_id),
                    limit_pass_v1(x.limits, min(greatest(m.due, m.published_at)), p_now)) as pass
            from unnest(p_all, p_limits) x(id, limits)
            join lateral (select k.* from message k where k.id = x.id offset 0) m on true
            join lateral (select k.weight from channel k where k.id = m.channel_id offset 0) c on true
            where x.id = any(p_ids)
            group by x.limits, m.channel_id, m.queue, c.weight
        ),
        charged as (
            insert into limit_lane (limits, channel_id, queue, pass, waiting, used)
            select s.limits, s.channel_id, s.queue, s.pass + s.charge, false, p_now
            from started s order by s.limits, s.channel_id
            on conflict (limits, channel_id) do update set pass = excluded.pass, used = excluded.used
        )
        select s.limits, min(s.pass) as pass from started s group by s.limits
    loop
        perform advance_limit_clock_v1(v_set.limits, v_set.pass, p_now);
    end loop;
end
$$;

-- Of a set whose limits are locked: something starts whose lane has had p_pass. If others had more before, they were
-- ahead of it: nobody who was due since then begins where they were. Written once a second at most while it rises.
create or replace function "laneway".advance_limit_clock_v1(p_limits text, p_pass double precision, p_now timestamptz)
returns void
language plpgsql
as $$
declare
    v_times timestamptz[];
    v_passes double precision[];
    v_last integer;
    v_first integer := 1;
    v_at timestamptz := p_now;
begin
    select c.times, c.passes, cardinality(c.times) into v_times, v_passes, v_last
    from limit_clock c where c.limits = p_limits;
    if v_passes[v_last] = p_pass or v_passes[v_last] < p_pass and v_times[v_last] > p_now - interval '1 second' then
        return;
    end if;
    while v_passes[v_last] > p_pass loop
        v_at := v_times[v_last];
        v_last := v_last - 1;
    end loop;
    -- The last one before the minute tells where it began.
    while v_times[v_first + 1] <= p_now - interval '1 minute' and v_first < v_last loop
        v_first := v_first + 1;
    end loop;
    insert into limit_clock (limits, times, passes) values (p_limits, array[v_at], array[p_pass])
    on conflict (limits) do update set times = v_times[v_first:v_last] || v_at, passes = v_passes[v_first:v_last] || p_pass;
    update shared_limit l set pass = p_pass where l.name = any(string_to_array(p_limits, ','));
end
$$;

-- Where a channel begins that comes to these limits, and whose first message was due at p_due: where the others were
-- then, so that it gains nothing by coming late or by coming back, and loses nothing if it was claimed later than others.
-- Before the last minute nothing is made up for. A set that is not known begins where others of its limits are.
create or replace function "laneway".limit_pass_v1(p_limits text, p_due timestamptz, p_now timestamptz)
returns double precision
language sql stable
as $$
    select coalesce(
        (select coalesce(
            (select a.pass + (b.pass - a.pass) * date_part('epoch', p_due - a.at) / date_part('epoch', b.at - a.at)
            from unnest(c.times, c.passes) with ordinality a(at, pass, place)
            join unnest(c.times, c.passes) with ordinality b(at, pass, place) on b.place = a.place + 1
            where p_due >= a.at and p_due < b.at limit 1),
            case when p_due < c.times[1] then c.passes[1] else (
                -- Since it was written last, those that wait have come as far as the lowest of them is now.
                select e.pass + coalesce(least(1, date_part('epoch', p_due - e.at) / nullif(date_part('epoch', p_now - e.at), 0)), 1)
                    * greatest(0, (select l.pass from "laneway".limit_lane l where l.limits = p_limits and l.waiting order by l.pass limit 1) - e.pass)
                from (select c.passes[cardinality(c.passes)] as pass, c.times[cardinality(c.times)] as at) e) end)
        from "laneway".limit_clock c where c.limits = p_limits),
        (select max(l.pass) from "laneway".shared_limit l where l.name = any(string_to_array(p_limits, ','))),
        0)
$$;

-- The same for one that comes to wait: while nothing waits for the same limits, not before those that wait for some of them.
create or replace function "laneway".limit_wait_pass_v1(p_limits text, p_due timestamptz, p_now timestamptz)
returns double precision
language sql stable
as $$
    select greatest("laneway".limit_pass_v1(p_limits, p_due, p_now), (
        select min((select l.pass from "laneway".limit_lane l where l.limits = q.limits and l.waiting order by l.pass limit 1))
        from (select distinct k.limits from "laneway".limit_queue k where k.limits <> p_limits) q
        where string_to_array(q.limits, ',') && string_to_array(p_limits, ',')
            and not exists (select from "laneway".limit_lane l where l.limits = p_limits and l.waiting)))
$$;

-- After admit_v1, in a transaction of its own: what comes behind messages that have to wait (p_ids) in their channels,
-- and names the same limits, waits too, as far as the next thousand of each tell, so that not every one of them has
-- to be claimed for it. Answers how many.
--
-- Keeps: what waits is found: its channel's lane says so, and limit_queue, whose rows cleanup_limits_v1 leaves alone
-- while they are locked here.
--
-- Locks: the channels and their lanes with SKIP LOCKED, then rows of limit_queue. Whoever holds one of these waits for
-- no channel.
create or replace function "laneway".sweep_limited_v1(p_ids bigint[], p_limits text[], p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_limits text;
    v_channels uuid[];
    v_now timestamptz;
    v_swept bigint;
    v_all bigint := 0;
begin
    for v_limits, v_channels in
        select x.limits, array_agg(distinct m.channel_id) from unnest(p_ids, p_limits) x(id, limits)
        join lateral (select k.channel_id from message k where k.id = x.id offset 0) m on true
        group by x.limits order by x.limits
    loop
        v_channels := array(
            select c.id from channel c join limit_lane l on l.limits = v_limits and l.channel_id = c.id
            where c.id = any(v_channels) order by c.id
            for no key update of c skip locked for update of l skip locked);
        continue when cardinality(v_channels) = 0;
        perform from limit_queue q where q.limits = v_limits for share;
        -- Later than the time of every claim that owned them.
        v_now := write_time_v1(p_now);
        with swept as materialized (
            select m.*, row_number() over (order by m.id) as number from unnest(v_channels) c(id) cross join lateral (
                select k.ctid as tid, k.id, k.channel_id, k.due, k.published_at, k.priority, k.queue, k.channel, k.kind, k.by_kind, k.headers, k.part
                from message k where k.channel_id = c.id and k.due <= v_now
                order by k.priority, k.due, k.id limit 1000
            ) m
            where m.headers -> 'laneway-limits' = to_jsonb(string_to_array(v_limits, ','))
                and (m.part is null or m.part not in (select p.id from staged_part p))
                and not exists (select from lease l where l.message_id = m.id offset 0)
                -- What was made due is about to start.
                and not exists (select from limit_wait w where w.message_id = m.id offset 0)
        ),
        moved as (
            update message m set due = v_now + interval '1 hour' + s.number * interval '1 microsecond'
            from swept s where m.ctid = s.tid
        ),
        waits as (
            insert into limit_wait (message_id, limits, channel_id, kind, priority, due)
            select s.id, v_limits, s.channel_id, s.kind, s.priority, s.due from swept s
        ),
        held as (
            update limit_lane l set waiting = true, used = v_now, pass = greatest(l.pass, limit_wait_pass_v1(v_limits, s.due, v_now))
            from (select k.channel_id, min(greatest(k.due, k.published_at)) as due from swept k group by k.channel_id) s
            where l.limits = v_limits and l.channel_id = s.channel_id and not l.waiting
        ),
        known as (
            insert into limit_queue (queue, limits)
            select distinct s.queue, v_limits from swept s
            where not exists (select from limit_queue q where q.queue = s.queue and q.limits = v_limits)
        ),
        lane as (
            select s.*, case when s.by_kind then '=' || s.kind when s.queue = any(array(select q.queue from kind_queue q)) then '-' else '' end as lane
            from swept s
        ),
        woken as (
            insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
            select v_now, l.channel_id, min(l.due), min(l.id), -count(*), l.priority, l.queue, l.channel, l.lane
            from lane l group by l.channel_id, l.priority, l.queue, l.channel, l.lane
            union all
            select v_now + interval '1 hour' + l.number * interval '1 microsecond', l.channel_id,
                v_now + interval '1 hour' + l.number * interval '1 microsecond', l.id, 1, l.priority, l.queue, l.channel, l.lane
            from lane l
            union all
            -- One at a time: the next may be of another kind now.
            select v_now, l.channel_id, v_now, 0, 0, 0, l.queue, l.channel, '-'
            from (select distinct l.channel_id, l.queue, l.channel from lane l where l.by_kind) l
        )
        select count(*) into v_swept from swept s;
        v_all := v_all + v_swept;
    end loop;
    return v_all;
end
$$;
