-- queue stats: how many messages of each queue are in which state; at most 1000 queues.
--
-- Exact where few rows tell it (look_v1). Else the kept counts, plus what was published since then, which is
-- estimated from 400 ids at equal distances; without kept counts all of it is estimated so. What is
-- scheduled and leased is counted up to a limit and taken off.
create or replace function "laneway".look_queue_stats_v1(p_most integer default 2000, p_now timestamptz default null)
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
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queues text[] := look_queues_v1(1000);
    v_each bigint := greatest(p_most / greatest(cardinality(v_queues), 1), 20);
    v_dead bigint := greatest(10000 / greatest(cardinality(v_queues), 1), 20);
    v_sample constant integer := 400;
    v_from bigint;
    v_last bigint;
    v_as_of timestamptz;
begin
    -- Read before the rows: what is newer than this id is in no kept count.
    select case when c.begun then c.counted else coalesce((select min(m.id) from message m), 1) - 1 end,
        case when c.begun then c.as_of end
    into v_from, v_as_of from counting c;
    select m.last_value - (not m.is_called)::integer into v_last from message_id m;

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
                select from dead d where d.queue = c.queue order by d.died_at, d.id limit v_dead + 1) d) as n
        from cut c where c.cut_dead
    ),
    kept as materialized (
        select k.queue, greatest(sum(k.live), 0) as live, greatest(sum(k.dead), 0) as dead from live_count k
        where exists (select from cut) and k.queue = any(array(select c.queue from cut c)) group by k.queue
    ),
    newer as materialized (
        select m.queue, count(*) * greatest(v_last - v_from, 0) / least(v_sample, greatest(v_last - v_from, 1)) as n
        from generate_series(1, least(v_sample, v_last - v_from)) i
        cross join lateral (
            select k.queue from message k
            where k.id = v_from + i * (v_last - v_from) / least(v_sample, v_last - v_from) offset 0) m
        where exists (select from cut c where c.cut) group by m.queue
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
