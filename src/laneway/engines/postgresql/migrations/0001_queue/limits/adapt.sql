-- How what ran behind limits has ended, what adaptive limits and breakers make of it, and setting and listing limits:
-- docs/decisions/0025-adaptive-limits-and-breakers.md.

-- Note how attempts end, before their leases are ended or in the same transaction: one row each, see limit_lease. Only
-- limits that adapt or have a breaker want to know. Answers the names of the others.
--
-- Keeps: what was taken back from its holder stays expired, whatever that says later. An attempt that is noted and does
-- not end is noted again when it does.
--
-- Locks: those rows of limit_lease, and no limit. Nobody else writes to them while their leases exist.
create or replace function "laneway".note_limits_v1(
    p_names text[], p_ids bigint[], p_fences bigint[], p_outcomes smallint[], p_now timestamptz default null
) returns setof text
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
    v_names text[] := array(
        select l.name from shared_limit l
        where l.name = any(p_names) and (l.adapt_min is not null or l.breaker_window is not null));
begin
    if cardinality(v_names) > 0 then
        update limit_lease k set outcome = x.outcome, ended_at = write_time_v1(p_now)
        from unnest(p_names, p_ids, p_fences, p_outcomes) x(name, id, fence, outcome)
        where k.name = x.name and k.message_id = x.id and k.fence = x.fence and k.outcome is distinct from 5
            and x.name = any(v_names);
    end if;
    return query select distinct n.name from unnest(p_names) n(name) where n.name <> all(v_names);
end
$$;

-- Part of upkeep, which has taken these leases back: the attempts expired. What others hold is about to be noted.
create or replace function "laneway".note_expired_limits_v1(p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set enable_nestloop = on
as $$
begin
    update limit_lease k set outcome = 5, ended_at = p_now
    from (
        select r.name, r.message_id from shared_limit l cross join unnest(p_ids) x(id)
        join limit_lease r on r.name = l.name and r.message_id = x.id
        where l.adapt_min is not null or l.breaker_window is not null
        for update of r skip locked
    ) e
    where k.name = e.name and k.message_id = e.message_id;
end
$$;

-- Part of whatever decides who starts, which has locked these limits: forget what has ended behind them, and have
-- those that adapt or have a breaker draw their conclusions.
create or replace function "laneway".end_limit_leases_v1(p_names text[])
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    v_names text[];
    v_rounds bigint[];
    v_outcomes smallint[];
    v_ended timestamptz[];
    v_one text;
begin
    with gone as (
        delete from limit_lease k where k.name = any(p_names)
            and not exists (select from lease l where l.message_id = k.message_id and l.fence = k.fence offset 0)
        returning k.name, k.round, k.outcome, k.ended_at
    )
    select array_agg(g.name), array_agg(g.round), array_agg(g.outcome), array_agg(g.ended_at)
    into v_names, v_rounds, v_outcomes, v_ended
    from gone g join lateral (
        select l.adapt_min, l.breaker_window from shared_limit l where l.name = g.name offset 0) l on true
    where l.adapt_min is not null or l.breaker_window is not null;
    if v_names is not null then
        foreach v_one in array array(select distinct n from unnest(v_names) n order by n) loop
            perform control_limit_v1(v_one,
                array(select x.round from unnest(v_names, v_rounds) with ordinality x(name, round, number) where x.name = v_one order by x.number),
                array(select x.outcome from unnest(v_names, v_outcomes) with ordinality x(name, outcome, number) where x.name = v_one order by x.number),
                array(select x.ended_at from unnest(v_names, v_ended) with ordinality x(name, ended_at, number) where x.name = v_one order by x.number));
        end loop;
    end if;
end
$$;

-- Part of end_limit_leases_v1: these attempts have ended behind a limit that adapts or has a breaker. The same as
-- LimitControl in engines/shared_limits.py.
--
-- Keeps: adapted is between its bounds, and is lowered once for all that ran when it was. While the breaker is open,
-- one more may run than of what ran when it opened, and not more than otherwise.
create or replace function "laneway".control_limit_v1(
    p_name text, p_rounds bigint[], p_outcomes smallint[], p_ended timestamptz[]
) returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    v_limit "laneway".shared_limit;
    v_width bigint;
    v_successes bigint;
    v_full boolean;
    v_slowed boolean;
    v_ended bigint;
    v_failed bigint;
    v_at timestamptz;
begin
    select l.* into strict v_limit from shared_limit l where l.name = p_name;
    v_full := cardinality(p_rounds) + (select count(*) from limit_lease k where k.name = p_name) >= v_limit.adapted;

    if v_limit.adapt_min is not null and v_limit.opened_at is null then
        select coalesce(bool_or(x.outcome in (3, 4)), false), count(*) filter (where x.outcome = 1)
        into v_slowed, v_successes
        from unnest(p_rounds, p_outcomes) x(round, outcome) where x.round >= v_limit.adapt_round;
        if v_slowed then
            v_limit.adapted := greatest(v_limit.adapt_min, v_limit.adapted / 2);
            v_limit.successes := 0;
            v_limit.round := v_limit.round + 1;
            v_limit.adapt_round := v_limit.round;
        elsif v_full then
            v_limit.successes := v_limit.successes + v_successes;
            while v_limit.adapted < v_limit.adapt_max and v_limit.successes >= v_limit.adapted loop
                v_limit.successes := v_limit.successes - v_limit.adapted;
                v_limit.adapted := v_limit.adapted + 1;
            end loop;
            if v_limit.adapted = v_limit.adapt_max then
                v_limit.successes := 0;
            end if;
        end if;
    end if;

    if v_limit.breaker_window is not null then
        select count(*), count(*) filter (where x.outcome <> 1), max(x.ended_at) filter (where x.outcome <> 1)
        into v_ended, v_failed, v_at
        from unnest(p_rounds, p_outcomes, p_ended) x(round, outcome, ended_at)
        where x.round >= v_limit.breaker_round and x.outcome in (1, 2, 3, 5);
        if v_ended > 0 and v_limit.opened_at is null then
            v_width := greatest(1, (extract(epoch from v_limit.breaker_window) * 100000)::bigint);
            with merged as (
                select s.slot, sum(s.ended)::bigint as ended, sum(s.failed)::bigint as failed from (
                    select * from unnest(v_limit.slots, v_limit.slots_ended, v_limit.slots_failed) k(slot, ended, failed)
                    union all
                    select (extract(epoch from x.ended_at) * 1000000)::bigint / v_width, 1, (x.outcome <> 1)::integer
                    from unnest(p_rounds, p_outcomes, p_ended) x(round, outcome, ended_at)
                    where x.round >= v_limit.breaker_round and x.outcome in (1, 2, 3, 5)
                ) s group by s.slot
            )
            select array_agg(m.slot order by m.slot), array_agg(m.ended order by m.slot), array_agg(m.failed order by m.slot),
                sum(m.ended), sum(m.failed)
            into v_limit.slots, v_limit.slots_ended, v_limit.slots_failed, v_ended, v_failed
            from merged m where m.slot > (select max(k.slot) - 10 from merged k);
            if v_at is null or v_ended < v_limit.breaker_minimum or v_failed < v_limit.breaker_failures * v_ended then
                v_failed := 0;
            else
                v_limit.opened_at := v_at;
            end if;
        elsif v_ended > 0 and v_failed = 0 then
            v_limit.opened_at := null;
            v_limit.open_until := null;
            v_limit.slots := null;
            v_limit.slots_ended := null;
            v_limit.slots_failed := null;
        end if;
        if v_failed > 0 and v_limit.opened_at is not null then
            v_limit.open_until := v_at + v_limit.breaker_pause;
            v_limit.rest_until := greatest(v_limit.rest_until, v_limit.open_until);
            v_limit.round := v_limit.round + 1;
            v_limit.breaker_round := v_limit.round;
        end if;
    end if;

    v_limit.concurrency := case when v_limit.adapt_min is null then v_limit.set_concurrency else v_limit.adapted end;
    if v_limit.opened_at is not null then
        v_limit.concurrency := least(v_limit.concurrency, 1 + (
            select count(*) from limit_lease k where k.name = p_name and k.round < v_limit.breaker_round));
    end if;
    update shared_limit l set concurrency = v_limit.concurrency, adapted = v_limit.adapted, successes = v_limit.successes,
        opened_at = v_limit.opened_at, open_until = v_limit.open_until, rest_until = v_limit.rest_until,
        slots = v_limit.slots, slots_ended = v_limit.slots_ended, slots_failed = v_limit.slots_failed,
        round = v_limit.round, adapt_round = v_limit.adapt_round, breaker_round = v_limit.breaker_round
    where l.name = p_name;
end
$$;

-- Set a shared limit: what p_named names (null removes it), and no more. Holds from the next claim on; a lower
-- concurrency is met as leases end. A new rate has a burst of its own, one second's worth, unless one is named. A limit
-- that adapts begins at its concurrency, or at the nearest of its bounds; one that is set to adapt stays where it is
-- between new bounds. Setting a breaker closes it, and it counts anew.
-- Answers no row, and writes nothing, if a burst has no rate to go with, or would last longer than a century.
-- Locks the limit's row: of two callers that change different limits, both changes hold.
create or replace function "laneway".set_shared_limit_v1(
    p_name text, p_named text[], p_concurrency bigint, p_rate double precision, p_burst bigint,
    p_adapt_min bigint default null, p_adapt_max bigint default null, p_failures double precision default null,
    p_window interval default null, p_minimum bigint default null, p_pause interval default null,
    p_now timestamptz default null
) returns table (
    concurrency bigint, rate double precision, burst bigint, adapt_min bigint, adapt_max bigint, adapted bigint,
    failures double precision, "window" interval, minimum bigint, pause interval, opened_at timestamptz, open_until timestamptz)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_limit "laneway".shared_limit;
    v_named text[];
    v_number bigint;
begin
    perform check_names_v1('limit', array[p_name]), check_limits_v1(array[p_concurrency], array[p_rate], '{}'),
        check_lengths_v1('window', array[p_window], '1 second', '1 day'), check_lengths_v1('pause', array[p_pause], '1 second', '1 day'),
        check_numbers_v1('minimum', array[p_minimum], 1, 1000000), check_numbers_v1('share of failures', array[p_failures], 0, 1),
        check_numbers_v1('bound of adapt', array[p_adapt_min, p_adapt_max], 1, 2147483647);
    insert into shared_limit (name, created_at) values (p_name, v_now) on conflict do nothing;
    select l.* into strict v_limit from shared_limit l where l.name = p_name for update;
    -- What is set to what it is changes nothing: programs set their limits whenever they start.
    v_named := array(select n from unnest(p_named) n where case n
        when 'concurrency' then p_concurrency is distinct from v_limit.set_concurrency
        when 'adapt' then row(p_adapt_min, p_adapt_max) is distinct from row(v_limit.adapt_min, v_limit.adapt_max)
        when 'breaker' then row(p_failures, p_window, p_minimum, p_pause) is distinct from
            row(v_limit.breaker_failures, v_limit.breaker_window, v_limit.breaker_minimum, v_limit.breaker_pause)
        else true end);
    if 'rate' = any(p_named) then
        v_limit.rate := p_rate;
    end if;
    if 'rate' = any(p_named) or 'burst' = any(p_named) then
        v_limit.burst := case when 'burst' = any(p_named) then p_burst end;
    end if;
    if v_limit.burst is null and v_limit.rate is not null then
        v_limit.burst := greatest(1, ceil(v_limit.rate));
    end if;
    if v_limit.burst is not null and (v_limit.rate is null or v_limit.burst / v_limit.rate > 100 * 366 * 86400.0) then
        return;
    end if;
    if 'concurrency' = any(v_named) then
        v_limit.set_concurrency := p_concurrency;
    end if;
    if 'adapt' = any(v_named) then
        v_limit.adapt_min := p_adapt_min;
        v_limit.adapt_max := p_adapt_max;
    end if;
    if 'adapt' = any(v_named) or 'concurrency' = any(v_named) then
        v_number := case when 'concurrency' = any(v_named) or v_limit.adapted is null then v_limit.set_concurrency else v_limit.adapted end;
        v_limit.adapted := greatest(v_limit.adapt_min, least(v_limit.adapt_max, coalesce(v_number, v_limit.adapt_min)));
        v_limit.successes := 0;
    end if;
    if 'breaker' = any(v_named) then
        v_limit.breaker_failures := p_failures;
        v_limit.breaker_window := p_window;
        v_limit.breaker_minimum := p_minimum;
        v_limit.breaker_pause := p_pause;
        v_limit.rest_until := nullif(v_limit.rest_until, v_limit.open_until);
        v_limit.opened_at := null;
        v_limit.open_until := null;
        v_limit.slots := null;
        v_limit.slots_ended := null;
        v_limit.slots_failed := null;
    end if;
    v_number := case when v_limit.adapt_min is null then v_limit.set_concurrency else v_limit.adapted end;
    return query
    update shared_limit l set
        -- While the breaker is open, whoever decides next knows how many more there may be.
        concurrency = case when v_limit.opened_at is null then v_number else least(v_number, l.concurrency) end,
        set_concurrency = v_limit.set_concurrency, rate = v_limit.rate, burst = v_limit.burst,
        -- Of the starts under another rate, only this is kept: that the burst is used up.
        tat = case when v_limit.rate is not null and l.tat is not null
            then least(l.tat, v_now + ceil(v_limit.burst / v_limit.rate * 1e6) * interval '1 microsecond') end,
        adapt_min = v_limit.adapt_min, adapt_max = v_limit.adapt_max, successes = v_limit.successes,
        adapted = case when v_limit.adapt_min is not null then v_limit.adapted end,
        breaker_failures = v_limit.breaker_failures, breaker_window = v_limit.breaker_window,
        breaker_minimum = v_limit.breaker_minimum, breaker_pause = v_limit.breaker_pause,
        opened_at = v_limit.opened_at, open_until = v_limit.open_until, rest_until = v_limit.rest_until,
        slots = v_limit.slots, slots_ended = v_limit.slots_ended, slots_failed = v_limit.slots_failed
    where l.name = p_name
    returning l.set_concurrency, l.rate, l.burst, l.adapt_min, l.adapt_max, l.adapted, l.breaker_failures, l.breaker_window,
        l.breaker_minimum, l.breaker_pause, l.opened_at, case when l.open_until > v_now then l.open_until end;
end
$$;

-- The shared limits by name, with what runs and waits behind each, counted to p_most. ended and failed: of attempts in
-- the breaker's window.
create or replace function "laneway".shared_limits_v1(p_most integer default 10000, p_now timestamptz default null)
returns table (
    name text, concurrency bigint, rate double precision, burst bigint, rest_until timestamptz, running bigint, waiting bigint,
    adapt_min bigint, adapt_max bigint, adapted bigint,
    failures double precision, "window" interval, minimum bigint, pause interval, opened_at timestamptz, open_until timestamptz,
    ended bigint, failed bigint)
language sql stable
set search_path = "laneway", pg_temp
as $$
    select l.name, l.set_concurrency, l.rate, l.burst,
        case when l.rest_until > t.now and l.rest_until is distinct from l.open_until then l.rest_until end,
        (select count(*) from (
            select from limit_lease k where k.name = l.name
                and exists (select from lease e where e.message_id = k.message_id and e.fence = k.fence)
            limit p_most) r),
        (select coalesce(sum(w.n), 0)::bigint from (select distinct q.limits from limit_queue q) s
        cross join lateral (select count(*) as n from (
            select from limit_wait w where w.limits = s.limits and w.released is null
                and exists (select from message m where m.id = w.message_id) limit p_most) c) w
        where l.name = any(string_to_array(s.limits, ','))),
        l.adapt_min, l.adapt_max, l.adapted, l.breaker_failures, l.breaker_window, l.breaker_minimum, l.breaker_pause,
        l.opened_at, case when l.open_until > t.now then l.open_until end, coalesce(r.ended, 0), coalesce(r.failed, 0)
    from (select coalesce(p_now, clock_timestamp()) as now) t
    cross join shared_limit l
    left join lateral (
        select sum(s.ended)::bigint as ended, sum(s.failed)::bigint as failed
        from unnest(l.slots, l.slots_ended, l.slots_failed) s(slot, ended, failed)
        where s.slot > (extract(epoch from t.now) * 1000000)::bigint
            / greatest(1, (extract(epoch from l.breaker_window) * 100000)::bigint) - 10
    ) r on true
    order by l.name
$$;
