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
    for v_limits in select q.limits from limit_queue q union select c.limits from limit_clock c loop
        with idle as (
            select l.channel_id from limit_lane l
            where l.limits = v_limits and not l.waiting and l.used < v_now - interval '1 minute' and l.pass <= coalesce((
                select k.pass from limit_lane k where k.limits = v_limits and k.waiting order by k.pass limit 1), 'infinity')
            order by l.used limit p_limit for update skip locked
        )
        delete from limit_lane l using idle i where l.limits = v_limits and l.channel_id = i.channel_id;
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
