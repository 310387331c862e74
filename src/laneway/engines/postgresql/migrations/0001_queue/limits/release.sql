-- Before a claim of queues in which messages wait for limits: as many as may start are due from now on, of channels
-- in turn, by weight, and in each by (priority, due, publish order).
--
-- Keeps: it promises nothing to anybody, admit_v1 decides. It writes nothing if nothing may start.
--
-- Locks: lanes and their channels with SKIP LOCKED, so that it waits for nobody. p_kinds: of these kinds, null: all.
-- Answers how many are due now, whether others wait, and when to look again if nothing else happens.
create or replace function "laneway".release_limited_v1(
    p_queues text[], p_kinds text[], p_want integer, p_now timestamptz default null,
    out released integer, out waiting boolean, out look_again timestamptz
)
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
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_limits text;
    v_room bigint;
    v_again timestamptz;
    v_ids bigint[];
    v_all bigint[] := '{}';
    v_left integer := p_want;
begin
    released := 0;
    waiting := false;
    for v_limits in
        select q.limits from (
            select distinct k.limits from limit_queue k where k.queue = any(p_queues)) q
        order by (select l.pass from limit_lane l where l.limits = q.limits and l.waiting order by l.pass limit 1), q.limits
    loop
        continue when not exists (select from limit_lane l where l.limits = v_limits and l.waiting and l.queue = any(p_queues));
        waiting := true;
        exit when v_left <= 0;
        select r.room, r.again into v_room, v_again from limit_room_v1(v_limits, v_now) r;
        look_again := least(look_again, v_again);
        v_room := least(v_room, v_left);
        while v_room > 0 loop
            v_ids := pick_limited_v1(v_limits, p_queues, p_kinds, v_room, v_now);
            exit when v_ids is null;
            v_all := v_all || v_ids;
            v_room := v_room - cardinality(v_ids);
            v_left := v_left - cardinality(v_ids);
        end loop;
    end loop;
    if cardinality(v_all) > 0 then
        perform make_due_v1(v_all, p_now);
        released := cardinality(v_all);
    end if;
    if waiting and look_again is null then
        look_again := v_now + interval '250 milliseconds';
    end if;
end
$$;

-- Part of release_limited_v1, which has locked the channels: messages that waited for their limits are due again,
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

-- How many messages may start behind a set of limits, and if none, when to look again.
create or replace function "laneway".limit_room_v1(p_limits text, p_now timestamptz, out room bigint, out again timestamptz)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    select greatest(0, coalesce(min(least(x.slots, floor(x.starts + 1e-9)::bigint, x.rest)), 1000000)), max(case
        when x.rest = 0 then x.rest_until
        when x.starts < 1 then p_now + ceil((1 - x.starts) / x.rate * 1e6) * interval '1 microsecond'
        when x.slots < 1 then p_now + interval '250 milliseconds' end)
    into room, again
    from (
        select l.rate, l.rest_until, case when l.rest_until > p_now then 0 end as rest,
            l.burst - date_part('epoch', greatest(l.tat, p_now) - p_now) * l.rate as starts,
            case when l.concurrency is not null then l.concurrency
                - (select count(*) from limit_lease k where k.name = l.name
                    and exists (select from lease e where e.message_id = k.message_id and e.fence = k.fence offset 0))
                - (select count(*) from limit_wait w where w.released > p_now - interval '1 second'
                    and l.name = any(string_to_array(w.limits, ','))) end as slots
        from unnest(string_to_array(p_limits, ',')) n(name) join shared_limit l on l.name = n.name
    ) x;
end
$$;

-- Part of release_limited_v1: one round over the channels that wait for a set of limits. Answers the messages that
-- were chosen, null if none.
create or replace function "laneway".pick_limited_v1(
    p_limits text, p_queues text[], p_kinds text[], p_room bigint, p_now timestamptz
) returns bigint[]
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
    v_ids bigint[];
begin
    with lane as materialized (
        select l.channel_id, l.pass, c.weight, c.concurrency
        from limit_lane l join channel c on c.id = l.channel_id
        where l.limits = p_limits and l.waiting and l.queue = any(p_queues)
            and not (c.paused and coalesce(c.paused_until > p_now, true))
            and (p_kinds is null or exists (
                select from limit_wait w where w.limits = p_limits and w.channel_id = l.channel_id
                    and w.released is null and w.kind = any(p_kinds)))
            -- A channel with limits of its own: what is due there first starts.
            and (c.concurrency is null and c.rate is null or not exists (
                select from limit_wait w where w.channel_id = l.channel_id and w.released > p_now - interval '1 second'))
        order by l.pass, l.channel_id limit p_room
        for update of l skip locked for no key update of c skip locked
    ),
    share as (
        select s.channel_id, s.weight, least(count(*), max(s.concurrency)) as n
        from (
            select l.channel_id, l.weight, l.concurrency from lane l cross join generate_series(0, p_room - 1) j
            order by l.pass + j / l.weight, l.channel_id limit p_room
        ) s group by s.channel_id, s.weight
    ),
    picked as materialized (
        select s.channel_id, s.weight, w.message_id from share s cross join lateral (
            select k.message_id from limit_wait k
            where k.limits = p_limits and k.channel_id = s.channel_id and k.released is null
                and (p_kinds is null or k.kind = any(p_kinds))
            order by k.priority desc, k.due, k.message_id limit s.n
        ) w
    ),
    marked as (
        update limit_wait w set released = p_now, charge = 1 / p.weight from picked p where w.message_id = p.message_id
    ),
    served as (
        update limit_lane l set pass = l.pass + coalesce(p.n / p.weight, 0),
            waiting = exists (
                select from limit_wait w where w.limits = p_limits and w.channel_id = l.channel_id and w.released is null
                    and not exists (select from picked x where x.message_id = w.message_id))
        from lane a left join (select x.channel_id, x.weight, count(*) as n from picked x group by x.channel_id, x.weight) p
            on p.channel_id = a.channel_id
        where l.limits = p_limits and l.channel_id = a.channel_id
    )
    select array_agg(p.message_id) into v_ids from picked p;
    return v_ids;
end
$$;

-- Set a shared limit: what p_named names (null removes it), and no more. Holds from the next claim on; a lower
-- concurrency is met as leases end. A new rate has a burst of its own, one second's worth, unless one is named.
-- Answers no row, and writes nothing, if a burst has no rate to go with, or would last longer than a century.
-- Locks the limit's row: of two callers that change different limits, both changes hold.
create or replace function "laneway".set_shared_limit_v1(
    p_name text, p_named text[], p_concurrency bigint, p_rate double precision, p_burst bigint, p_now timestamptz default null
) returns table (concurrency bigint, rate double precision, burst bigint)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_old shared_limit;
    v_rate double precision;
    v_burst bigint;
begin
    insert into shared_limit (name, created_at) values (p_name, v_now) on conflict do nothing;
    select l.* into strict v_old from shared_limit l where l.name = p_name for update;
    v_rate := case when 'rate' = any(p_named) then p_rate else v_old.rate end;
    v_burst := case when 'burst' = any(p_named) then p_burst when 'rate' = any(p_named) then null else v_old.burst end;
    if v_burst is null and v_rate is not null then
        v_burst := greatest(1, ceil(v_rate));
    end if;
    if v_burst is not null and (v_rate is null or v_burst / v_rate > 100 * 366 * 86400.0) then
        return;
    end if;
    return query
    update shared_limit l set
        concurrency = case when 'concurrency' = any(p_named) then p_concurrency else l.concurrency end,
        rate = v_rate, burst = v_burst,
        -- Of the starts under another rate, only this is kept: that the burst is used up.
        tat = case when v_rate is not null and l.tat is not null then least(l.tat, v_now + ceil(v_burst / v_rate * 1e6) * interval '1 microsecond') end
    where l.name = p_name
    returning l.concurrency, l.rate, l.burst;
end
$$;

-- Nothing starts behind the limit for p_length; a rest that lasts longer stays as it is.
create or replace function "laneway".rest_shared_limit_v1(p_name text, p_length interval, p_now timestamptz default null)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    insert into shared_limit (name, rest_until) values (p_name, coalesce(p_now, clock_timestamp()) + p_length)
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

-- The shared limits by name, with what runs and waits behind each, counted to p_most.
create or replace function "laneway".shared_limits_v1(p_most integer default 10000, p_now timestamptz default null)
returns table (
    name text, concurrency bigint, rate double precision, burst bigint, rest_until timestamptz, running bigint, waiting bigint)
language sql stable
set search_path = "laneway", pg_temp
as $$
    select l.name, l.concurrency, l.rate, l.burst,
        case when l.rest_until > coalesce(p_now, clock_timestamp()) then l.rest_until end,
        (select count(*) from (
            select from limit_lease k where k.name = l.name
                and exists (select from lease e where e.message_id = k.message_id and e.fence = k.fence)
            limit p_most) r),
        (select coalesce(sum(w.n), 0)::bigint from (select distinct q.limits from limit_queue q) s
        cross join lateral (select count(*) as n from (
            select from limit_wait w where w.limits = s.limits and w.released is null
                and exists (select from message m where m.id = w.message_id) limit p_most) c) w
        where l.name = any(string_to_array(s.limits, ',')))
    from shared_limit l order by l.name
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

-- Part of upkeep: lanes in which nothing waits, and what is known of messages that were made due a while ago.
--
-- Locks a set's limits before its queue is forgotten, as admit_v1 does; what others hold is left for the next time.
create or replace function "laneway".cleanup_limits_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_limits text;
    v_count bigint;
begin
    if not exists (select from limit_queue) then
        return 0;
    end if;
    with gone as (
        delete from limit_wait w where w.message_id = any(array(
            select k.message_id from limit_wait k where k.released < v_now - interval '1 minute' order by k.released limit p_limit))
        returning w.message_id
    )
    select count(*) into v_count from gone;
    with idle as (
        select l.limits, l.channel_id from limit_lane l
        where not l.waiting and l.pass <= coalesce((
            select k.pass from limit_lane k where k.limits = l.limits and k.waiting order by k.pass limit 1), 'infinity')
        limit p_limit for update skip locked
    )
    delete from limit_lane l using idle i where l.limits = i.limits and l.channel_id = i.channel_id;
    for v_limits in
        select distinct q.limits from limit_queue q
        where not exists (select from limit_lane l where l.limits = q.limits and l.waiting and l.queue = q.queue)
    loop
        continue when (
            select count(*) from (
                select from shared_limit l where l.name = any(string_to_array(v_limits, ',')) for update skip locked) x
        ) < cardinality(string_to_array(v_limits, ','));
        delete from limit_queue q where q.limits = v_limits
            and not exists (select from limit_lane l where l.limits = q.limits and l.waiting and l.queue = q.queue);
        delete from limit_lease k where k.name = any(string_to_array(v_limits, ','))
            and not exists (select from lease l where l.message_id = k.message_id and l.fence = k.fence);
    end loop;
    return v_count;
end
$$;
