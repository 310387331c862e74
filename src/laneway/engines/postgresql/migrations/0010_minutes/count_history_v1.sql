-- Part of counting: up to p_limit history rows after a position and before p_before, added to the minutes and to
-- the kept counts. Answers how many rows there were, and the last one's position.
create or replace function "laneway".count_history_v1(
    p_xid bigint, p_id bigint, p_before bigint, p_limit integer, p_exact boolean,
    out counted bigint, out last_xid bigint, out last_id bigint
)
language plpgsql
as $$
#variable_conflict use_column
declare
    -- laneway.operations.WAIT_BOUNDS. A time of exactly a bound belongs below it, hence the microsecond.
    v_bounds constant interval[] := array['10 ms', '50 ms', '100 ms', '500 ms', '1 s', '5 s', '15 s', '60 s', '300 s',
        '1800 s', '3600 s', '21600 s'];
    v_least constant interval := '1 microsecond';
begin
    with part as materialized (
        select h.xid, h.id, h.queue, h.kind, h.outcome, h.dead, h.claimed_at,
            date_trunc('minute', h.ended_at, 'UTC') as at,
            case when h.claimed_at is not null then
                width_bucket(coalesce(h.started_at, h.claimed_at) - greatest(h.due, h.published_at) - v_least, v_bounds) end as wait,
            case when h.claimed_at is not null then
                width_bucket(h.ended_at - coalesce(h.started_at, h.claimed_at) - v_least, v_bounds) end as run
        from history h
        where h.xid >= p_xid and h.xid < p_before and (h.xid, h.id) > (p_xid, p_id)
        order by h.xid, h.id limit p_limit
    ),
    -- Few groups are left of these, so that the histograms are cheap.
    ended as materialized (
        select p.queue, p.kind, p.at, p.outcome, p.dead, p.wait, p.run, count(*) as n
        from part p where p.outcome <> 'stale'
        group by p.queue, p.kind, p.at, p.outcome, p.dead, p.wait, p.run
    ),
    kept as (
        insert into live_count as k (queue, kind, live, dead)
        select e.queue, e.kind, sum(f.live * e.n), sum(f.dead * e.n)
        from ended e cross join lateral count_effect_v1(e.outcome, e.dead) f
        group by e.queue, e.kind having sum(f.live * e.n) <> 0 or sum(f.dead * e.n) <> 0
        on conflict (queue, kind) do update set live = k.live + excluded.live, dead = k.dead + excluded.dead
    ),
    figure as (
        select e.queue, e.kind, e.at, 0::bigint as started,
            e.outcome, case when e.dead then e.n else 0 end as dead, e.wait, e.run, e.n
        from ended e
        union all
        select p.queue, p.kind, date_trunc('minute', p.claimed_at, 'UTC'), count(*), '', 0, null, null, 0
        from part p where p.claimed_at is not null and p.outcome <> 'stale' group by 1, 2, 3
    ),
    added as (
        insert into minute as m (span, at, queue, kind, started, completed, retried, failed, expired, deferred,
            given_back, cancelled, lapsed, redriven, discarded, dead, waits, runs, exact)
        select s.span, date_trunc(s.unit, f.at, 'UTC'), f.queue, f.kind, sum(f.started),
            coalesce(sum(f.n) filter (where f.outcome = 'completed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'retried'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'failed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'expired'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'deferred'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'given_back'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'cancelled'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'lapsed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'redriven'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'discarded'), 0),
            sum(f.dead),
            case when count(f.wait) > 0 then array[
                coalesce(sum(f.n) filter (where f.wait = 0), 0), coalesce(sum(f.n) filter (where f.wait = 1), 0),
                coalesce(sum(f.n) filter (where f.wait = 2), 0), coalesce(sum(f.n) filter (where f.wait = 3), 0),
                coalesce(sum(f.n) filter (where f.wait = 4), 0), coalesce(sum(f.n) filter (where f.wait = 5), 0),
                coalesce(sum(f.n) filter (where f.wait = 6), 0), coalesce(sum(f.n) filter (where f.wait = 7), 0),
                coalesce(sum(f.n) filter (where f.wait = 8), 0), coalesce(sum(f.n) filter (where f.wait = 9), 0),
                coalesce(sum(f.n) filter (where f.wait = 10), 0), coalesce(sum(f.n) filter (where f.wait = 11), 0),
                coalesce(sum(f.n) filter (where f.wait = 12), 0)]::bigint[] end,
            case when count(f.run) > 0 then array[
                coalesce(sum(f.n) filter (where f.run = 0), 0), coalesce(sum(f.n) filter (where f.run = 1), 0),
                coalesce(sum(f.n) filter (where f.run = 2), 0), coalesce(sum(f.n) filter (where f.run = 3), 0),
                coalesce(sum(f.n) filter (where f.run = 4), 0), coalesce(sum(f.n) filter (where f.run = 5), 0),
                coalesce(sum(f.n) filter (where f.run = 6), 0), coalesce(sum(f.n) filter (where f.run = 7), 0),
                coalesce(sum(f.n) filter (where f.run = 8), 0), coalesce(sum(f.n) filter (where f.run = 9), 0),
                coalesce(sum(f.n) filter (where f.run = 10), 0), coalesce(sum(f.n) filter (where f.run = 11), 0),
                coalesce(sum(f.n) filter (where f.run = 12), 0)]::bigint[] end,
            p_exact
        from figure f cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
        group by 1, 2, 3, 4
        on conflict (span, at, queue, kind) do update set
            started = m.started + excluded.started, completed = m.completed + excluded.completed,
            retried = m.retried + excluded.retried, failed = m.failed + excluded.failed,
            expired = m.expired + excluded.expired, deferred = m.deferred + excluded.deferred,
            given_back = m.given_back + excluded.given_back, cancelled = m.cancelled + excluded.cancelled,
            lapsed = m.lapsed + excluded.lapsed, redriven = m.redriven + excluded.redriven,
            discarded = m.discarded + excluded.discarded, dead = m.dead + excluded.dead,
            waits = add_counts_v1(m.waits, excluded.waits), runs = add_counts_v1(m.runs, excluded.runs),
            exact = m.exact and excluded.exact
    )
    select count(*), (array_agg(p.xid order by p.xid desc, p.id desc))[1], (array_agg(p.id order by p.xid desc, p.id desc))[1]
    into counted, last_xid, last_id from part p;
end
$$;
