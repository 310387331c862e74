with week as (
    select h.* from hours h where h.hour >= %(now)s - interval '7 days'
),
one as (
    select r.queue, max(r.started) as best_hour, greatest(max(r.running_peak), 1) as slots, max(r.workers) as workers,
        max(r.came * coalesce(r.mean_run_s, 0)) / 3600 as demand,
        coalesce(
            (array_agg(r.mean_running order by r.hour desc) filter (where r.hour < date_bin('1 hour', %(now)s, timestamptz 'epoch')))[1],
            (array_agg(r.mean_running order by r.hour desc))[1]) as running
    from week r group by r.queue
),
pace as (
    select o.queue,
        (select count(*) from period p where p.queue = o.queue and p.state = 'waiting'
            and date_bin('5 minutes', p.begins, timestamptz 'epoch') between %(now)s - interval '60 minutes' and %(now)s) as came,
        (select count(*) from period p where p.queue = o.queue and p.state = 'waiting' and p.started
            and date_bin('5 minutes', p.ends, timestamptz 'epoch') between %(now)s - interval '60 minutes' and %(now)s) as started,
        (select count(*) from live l where l.queue = o.queue and l.state = 'waiting') as waiting
    from one o
)
select o.queue, p.waiting, (select count(*) from live l where l.queue = o.queue and l.state = 'scheduled') as scheduled,
    (select count(*) from live l where l.queue = o.queue and l.state = 'leased') as leased,
    (select count(*) from live l where l.queue = o.queue and l.state = 'dead') as dead,
    (select extract(epoch from max(l.seen_at - l.due)) from live l where l.queue = o.queue and l.state = 'waiting')::double precision as oldest_s,
    p.came as came_per_hour, p.started as started_per_hour,
    case when p.waiting = 0 then 0 when p.started > p.came then p.waiting * 3600.0 / (p.started - p.came) end::double precision as drains_in_s,
    o.best_hour, o.slots, o.workers, o.running / o.slots as utilisation, ceil(o.demand / 0.7) as slots_needed
from one o join pace p using (queue)
