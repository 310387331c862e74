-- Part of looks: the names of the queues that have messages, or (p_empty) a channel, at most p_most. Goes from one name to the next in each
-- index, backwards: the newest entry of a queue is read, not the dead ones that lie before it.
create or replace function "laneway".look_queues_v1(p_most integer, p_empty boolean default false)
returns text[]
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
    with recursive woken(queue, place) as (
        (select w.queue, 1 from wake w order by w.queue desc, w.at desc limit 1)
        union all
        select (select w.queue from wake w where w.queue < p.queue order by w.queue desc, w.at desc limit 1), p.place + 1
        from woken p where p.queue is not null and p.place <= p_most
    ),
    ring(queue, place) as (
        (select t.queue, 1 from token t where t.turn is not null order by t.queue desc, t.turn desc limit 1)
        union all
        select (
            select t.queue from token t where t.turn is not null and t.queue < p.queue
            order by t.queue desc, t.turn desc limit 1), p.place + 1
        from ring p where p.queue is not null and p.place <= p_most
    ),
    parked(queue, place) as (
        (select t.queue, 1 from token t where t.turn is null and t.n > 0 order by t.queue desc limit 1)
        union all
        select (
            select t.queue from token t where t.turn is null and t.n > 0 and t.queue < p.queue
            order by t.queue desc limit 1), p.place + 1
        from parked p where p.queue is not null and p.place <= p_most
    ),
    died(queue, place) as (
        (select d.queue, 1 from dead d order by d.queue desc, d.died_at desc, d.id desc limit 1)
        union all
        select (
            select d.queue from dead d where d.queue < p.queue
            order by d.queue desc, d.died_at desc, d.id desc limit 1), p.place + 1
        from died p where p.queue is not null and p.place <= p_most
    ),
    named(queue, place) as (
        (select c.queue, 1 from channel c where p_empty order by c.queue desc, c.name desc limit 1)
        union all
        select (
            select c.queue from channel c where c.queue < p.queue order by c.queue desc, c.name desc limit 1), p.place + 1
        from named p where p.queue is not null and p.place <= p_most
    ),
    -- Where all messages are leased: the newest leases, and what was counted.
    leased as (
        select c.queue from (select l.channel_id from lease l order by l.message_id desc limit 100) l
        join channel c on c.id = l.channel_id
    )
    select array(
        select x.queue from (
            select w.queue from woken w union select r.queue from ring r union select p.queue from parked p
            union select d.queue from died d union select n.queue from named n union select l.queue from leased l
            union (select k.queue from live_count k where k.live > 0 or k.dead > 0 order by k.queue limit 10 * p_most)
        ) x
        where x.queue is not null order by x.queue limit p_most)
$$;

-- Part of looks: what the tables tell about channels of these queues, from at most p_most wakes (the oldest), turns (the
-- next) and parked channels for all of them together, 1000 leases in 100 channels, and 100 dead letters. Several rows a channel.
-- cut: not all of the queue's wakes, turns, parked channels or leases were read; cut_dead: not all dead letters. Such a row
-- has no channel. The name is given where the rows have it.
create or replace function "laneway".look_v1(p_queues text[], p_most integer, p_now timestamptz)
returns table (
    queue text, channel_id uuid, channel text, waiting bigint, scheduled bigint, leased bigint, dead bigint, oldest timestamptz,
    turn timestamptz, cut boolean, cut_dead boolean, looked bigint
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_each bigint := greatest(p_most / greatest(cardinality(p_queues), 1), 20);
    v_leases constant bigint := 1000;
    v_holders constant bigint := 100;
    v_dead bigint := greatest(100 / greatest(cardinality(p_queues), 1), 20);
begin
    return query
    with woken as materialized (
        select w.queue, w.channel_id, w.channel, w.n, w.due, w.n > 0 and w.due <= p_now as old
        from unnest(p_queues) q(queue)
        cross join lateral (select k.* from wake k where k.queue = q.queue order by k.at limit v_each + 1) w
    ),
    turns as materialized (
        select t.queue, t.channel_id, t.n, t.due, t.turn
        from unnest(p_queues) q(queue)
        cross join lateral (
            select k.* from token k where k.queue = q.queue and k.turn is not null order by k.turn limit v_each + 1) t
    ),
    parked as materialized (
        select t.queue, t.channel_id, t.n, t.due
        from unnest(p_queues) q(queue)
        cross join lateral (
            select k.* from token k where k.queue = q.queue and k.turn is null and k.n <> 0 limit v_each + 1) t
    ),
    held as materialized (
        select l.channel_id, count(*) as n
        from (select k.channel_id from lease k order by k.message_id limit v_leases + 1) l group by l.channel_id
    ),
    holder as materialized (
        select h.channel_id, h.n from held h limit v_holders
    ),
    died as materialized (
        select d.queue, d.channel
        from unnest(p_queues) q(queue)
        cross join lateral (
            -- As a range: with an equality the planner may walk through the letters of all queues by time, and a queue
            -- that has only a few new ones would be found after a million others.
            select k.queue, k.channel from dead k where k.queue between q.queue and q.queue
            order by k.queue, k.died_at, k.id limit v_dead + 1) d
    )
    select w.queue, w.channel_id, min(w.channel), coalesce(sum(w.n) filter (where w.due <= p_now), 0)::bigint,
        coalesce(sum(w.n) filter (where w.due > p_now), 0)::bigint, 0::bigint, 0::bigint,
        min(w.due) filter (where w.old), null::timestamptz, false, false, count(*)
    from woken w group by w.queue, w.channel_id
    union all
    select t.queue, t.channel_id, null, t.n, 0, 0, 0, case when cardinality(t.due) = 1 then t.due[1] else (select min(d) from unnest(t.due) d) end, t.turn, false, false, 1 from turns t
    union all
    select t.queue, t.channel_id, null, t.n, 0, 0, 0, case when cardinality(t.due) = 1 then t.due[1] else (select min(d) from unnest(t.due) d) end, null, false, false, 1 from parked t
    union all
    select c.queue, h.channel_id, null, 0, 0, h.n, 0, null, null, false, false, h.n
    from holder h cross join lateral (select k.queue from channel k where k.id = h.channel_id offset 0) c
    where c.queue = any(p_queues)
    union all
    select d.queue, channel_id_v1(d.queue, d.channel), d.channel, 0, 0, 0, d.n, null, null, false, false, d.n
    from (select d.queue, d.channel, count(*) as n from died d group by d.queue, d.channel) d
    union all
    select q.queue, null, null, 0, 0, 0, 0, null, null, x.cut, x.cut_dead, 0
    from unnest(p_queues) q(queue)
    cross join lateral (
        select (select count(*) from woken w where w.queue = q.queue) > v_each
            or (select count(*) from turns t where t.queue = q.queue) > v_each
            or (select count(*) from parked t where t.queue = q.queue) > v_each
            or (select sum(h.n) from held h) > v_leases or (select count(*) from held h) > v_holders as cut,
            (select count(*) from died d where d.queue = q.queue) > v_dead as cut_dead
    ) x
    where x.cut or x.cut_dead;
end
$$;

-- queue stats: how many messages of each queue are in which state; at most 1000 queues.
--
-- Exact where few rows tell it (look_v1). Else the kept counts, plus what was published since then, which is
-- estimated from 200 ids at equal distances; without kept counts all of it is estimated so. What is
-- scheduled and leased is counted up to a limit and taken off.
create or replace function "laneway".look_queue_stats_v1(p_most integer default 500, p_now timestamptz default null)
returns table (
    queue text, waiting bigint, scheduled bigint, leased bigint, dead bigint, channels bigint, oldest timestamptz,
    exact boolean, as_of timestamptz
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queues text[] := look_queues_v1(1000);
    v_each bigint := greatest(p_most / greatest(cardinality(v_queues), 1), 20);
    v_dead bigint := greatest(5000 / greatest(cardinality(v_queues), 1), 20);
    v_sample constant integer := 200;
    v_from bigint;
    v_last bigint;
    v_life bigint;
    v_before bigint;
    v_as_of timestamptz;
begin
    -- Read before the rows: what is newer than this id is in no kept count.
    select case when c.begun then c.counted else coalesce((select min(m.id) from message m), 1) - 1 end,
        case when c.begun then c.as_of end
    into v_from, v_as_of from counting c;
    select m.last_value - (not m.is_called)::integer into v_last from message_id m;
    -- Between two lives of the server lie numbers that no message has.
    v_life := (select l.last_value from server_life l);
    v_before := case when v_from >= v_life then v_from else coalesce((select max(m.id) from message m where m.id between v_from and v_life), v_from) end;

    return query
    with part as materialized (
        select * from look_v1(v_queues, p_most, v_now)
    ),
    known as materialized (
        select c.queue, sum(c.waiting) as waiting, sum(c.scheduled) as scheduled, sum(c.leased) as leased,
            sum(c.dead) as dead, count(*) filter (where c.any) as channels, min(c.oldest) as oldest
        from (
            select p.queue, greatest(sum(p.waiting), 0) as waiting, greatest(sum(p.scheduled), 0) as scheduled,
                sum(p.leased) as leased, sum(p.dead) as dead,
                case when sum(p.waiting) > 0 then min(p.oldest) end as oldest,
                sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0 as any
            from part p where p.channel_id is not null group by p.queue, p.channel_id
        ) c
        group by c.queue
    ),
    cut as materialized (
        select p.queue, bool_or(p.cut) as cut, bool_or(p.cut_dead) as cut_dead
        from part p where p.channel_id is null group by p.queue
    ),
    -- The leases of a look are those of some channels: their shares, of all.
    share as materialized (
        select (select count(*) from (select from lease l limit 10000) l)::double precision
            / nullif((select sum(o.leased) from known o), 0) as factor
        where exists (select from cut c where c.cut)
    ),
    died as materialized (
        select c.queue, (
            select count(*) from (
                select from dead d where d.queue between c.queue and c.queue
                order by d.queue, d.died_at, d.id limit v_dead + 1) d) as n
        from cut c where c.cut_dead
    ),
    kept as materialized (
        select k.queue, greatest(sum(k.live), 0) as live, greatest(sum(k.dead), 0) as dead from live_count k
        where exists (select from cut) and k.queue = any(array(select c.queue from cut c)) group by k.queue
    ),
    newer as materialized (
        select f.queue, sum(f.n)::bigint as n
        from (values (v_from, v_before), (greatest(v_from, v_life), v_last)) r(below, last) cross join lateral (
            select m.queue, count(*) * (r.last - r.below) / least(v_sample, r.last - r.below) as n
            from generate_series(1, least(v_sample, r.last - r.below)) i
            cross join lateral (
                select k.queue from message k
                where k.id = r.below + i * (r.last - r.below) / least(v_sample, r.last - r.below)
                    and (k.part is null or k.part not in (select p.id from staged_part p)) offset 0) m
            group by m.queue) f
        where exists (select from cut c where c.cut) group by f.queue
    ),
    later as materialized (
        select c.queue, greatest((
            select sum(w.n) from (
                select k.n from wake k where k.queue = c.queue and k.at > v_now order by k.at limit v_each) w), 0) as n
        from cut c where c.cut
    )
    select q.queue,
        case when c.cut then greatest(
            coalesce(k.live, 0) + coalesce(n.n, 0) - coalesce(l.n, 0) - coalesce(o.leased * s.factor, 0), o.waiting, 0)
        else coalesce(o.waiting, 0) end::bigint,
        case when c.cut then greatest(l.n, o.scheduled) else coalesce(o.scheduled, 0) end::bigint,
        case when c.cut then coalesce(o.leased * s.factor, 0) else coalesce(o.leased, 0) end::bigint,
        case when not c.cut_dead or c.queue is null then coalesce(o.dead, 0)
            when i.n <= v_dead then i.n else greatest(k.dead, i.n) end::bigint,
        coalesce(o.channels, 0), case when isfinite(o.oldest) then o.oldest end,
        c.queue is null, case when c.queue is not null then coalesce(v_as_of, v_now) end
    from unnest(v_queues) q(queue)
    left join known o on o.queue = q.queue
    left join cut c on c.queue = q.queue
    left join kept k on k.queue = q.queue
    left join newer n on n.queue = q.queue
    left join later l on l.queue = q.queue
    left join died i on i.queue = q.queue
    left join share s on true
    where o.channels > 0 or c.queue is not null
    order by q.queue;
end
$$;

-- Part of looks: why a channel starts nothing at the moment, null if nothing holds it back. p_turn: when its turn comes.
create or replace function "laneway".waits_for_v1(
    p_queue text, p_paused boolean, p_throttled boolean, p_closing boolean, p_concurrency bigint, p_leased bigint, p_rate double precision, p_turn timestamptz,
    p_now timestamptz
) returns text
language sql stable
as $$
    select case
        when exists (
            select from "laneway".pause p where p.queue = p_queue and p.kind is null and (p.until is null or p.until > p_now))
            then 'queue paused'
        when p_paused then case when p_throttled then 'throttled' else 'paused' end
        when p_leased >= p_concurrency then 'concurrency'
        when p_rate is not null and p_turn > p_now then 'rate'
        when p_closing then 'closing' end
$$;

-- minutes: what upkeep has counted, added up by steps of whole minutes; see laneway.operations.Minute. p_by keeps
-- queues ('queue') or queues and kinds ('kind') apart. Reads hours where the steps are whole hours. Without p_times
-- waits and runs are null: to add them up is half of the work.
create or replace function "laneway".minutes_v1(
    p_queue text, p_kind text, p_since timestamptz, p_until timestamptz, p_step interval, p_by text,
    p_times boolean default true
) returns table (
    at timestamptz, queue text, kind text, published bigint, started bigint, completed bigint, retried bigint,
    failed bigint, expired bigint, deferred bigint, given_back bigint, cancelled bigint, lapsed bigint, redriven bigint,
    discarded bigint, dead bigint, waits bigint[], runs bigint[], depth bigint, oldest timestamptz, exact boolean
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_zero constant timestamptz := '1970-01-01 00:00:00 UTC';
    v_span smallint := case when mod(extract(epoch from p_step), 3600) = 0 then 60 else 1 end;
    v_from timestamptz;
    v_to timestamptz;
begin
    perform check_times_v1('time', array[p_since, p_until]), check_lengths_v1('step', array[p_step], '1 minute', '14 days');
    v_from := date_bin(p_step, p_since, v_zero);
    -- The last step is one that begins before p_until, and it is whole.
    v_to := date_bin(p_step, p_until - interval '1 microsecond', v_zero) + p_step;
    return query
    with row as not materialized (
        select date_bin(p_step, m.at, v_zero) as step, m.at, m.queue, m.kind, m.published, m.started, m.completed,
            m.retried, m.failed, m.expired, m.deferred, m.given_back, m.cancelled, m.lapsed, m.redriven, m.discarded,
            m.dead, m.depth, m.oldest, m.exact, case when p_times then m.waits end as waits,
            case when p_times then m.runs end as runs
        from minute m
        where m.span = v_span and m.at >= v_from and m.at < v_to
            and (m.queue = '' and m.kind = '' or (p_queue is null or m.queue = p_queue) and (p_kind is null or m.kind = p_kind))
    ),
    -- When depths were noted last in each step.
    noted as (
        select r.step, max(r.at) as at from row r where r.queue = '' group by r.step
    )
    select r.step, case when p_by is null then p_queue else r.queue end,
        case when p_by = 'kind' then r.kind else p_kind end,
        sum(r.published)::bigint, sum(r.started)::bigint, sum(r.completed)::bigint, sum(r.retried)::bigint,
        sum(r.failed)::bigint, sum(r.expired)::bigint, sum(r.deferred)::bigint, sum(r.given_back)::bigint,
        sum(r.cancelled)::bigint, sum(r.lapsed)::bigint, sum(r.redriven)::bigint, sum(r.discarded)::bigint,
        sum(r.dead)::bigint,
        case when count(r.waits) > 0 then array[
            sum(r.waits[1]), sum(r.waits[2]), sum(r.waits[3]), sum(r.waits[4]), sum(r.waits[5]),
            sum(r.waits[6]), sum(r.waits[7]), sum(r.waits[8]), sum(r.waits[9]), sum(r.waits[10]),
            sum(r.waits[11]), sum(r.waits[12]), sum(r.waits[13])]::bigint[] end,
        case when count(r.runs) > 0 then array[
            sum(r.runs[1]), sum(r.runs[2]), sum(r.runs[3]), sum(r.runs[4]), sum(r.runs[5]),
            sum(r.runs[6]), sum(r.runs[7]), sum(r.runs[8]), sum(r.runs[9]), sum(r.runs[10]),
            sum(r.runs[11]), sum(r.runs[12]), sum(r.runs[13])]::bigint[] end,
        case when count(n.at) > 0 then coalesce(sum(r.depth) filter (where r.at = n.at), 0)::bigint end,
        min(r.oldest) filter (where r.at = n.at), bool_and(r.exact)
    from row r left join noted n on n.step = r.step
    where p_by is null or r.queue <> ''
    group by 1, 2, 3
    order by 1, 2, 3;
end
$$;

-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
create view "laneway".minute_v1 as
select m.at, m.queue, m.kind, m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred,
    m.given_back, m.cancelled, m.lapsed, m.redriven, m.discarded, m.dead, m.waits, m.runs, m.depth, m.oldest, m.exact
from "laneway".minute m where m.span = 1 and m.queue <> '';
