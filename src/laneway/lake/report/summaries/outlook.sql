-- The state now, and when the backlog will be gone [queue]: what is waiting, arrivals and starts per hour (the slots that
-- began in the last 60 minutes), when the backlog is gone at this pace (null: never), the peak of running attempts, how busy the
-- workers are, and how many would be needed at 70 % utilisation.
with have as (
    select l.queue, count_if(l.state = 'waiting') as waiting, count_if(l.state = 'scheduled') as scheduled,
        count_if(l.state = 'leased') as leased, count_if(l.state = 'dead') as dead,
        max(case when l.state = 'waiting' then (unix_micros(l.seen_at) - unix_micros(l.due)) / 1e6 end) as oldest_s
    from live l
    group by l.queue
),
pace as (
    select l.queue, sum(l.came) as came, sum(l.started) as started
    from lanes l
    where l.slot >= :now - interval 60 minutes and l.slot <= :now
    group by l.queue
),
week as (
    select h.queue, max(h.started) as best_hour, max(h.running_peak) as slots, max(h.workers) as workers,
        -- The current hour is not over: its mean would be too low.
        coalesce(max_by(h.mean_running, h.hour) filter (where h.hour < date_trunc('HOUR', :now)),
            max_by(h.mean_running, h.hour)) as mean_running, max(h.came * coalesce(h.mean_run_s, 0)) / 3600 as demand
    from hours h
    where h.hour >= :now - interval 7 days
    group by h.queue
)
select w.queue, coalesce(h.waiting, 0) as waiting, coalesce(h.scheduled, 0) as scheduled,
    coalesce(h.leased, 0) as leased, coalesce(h.dead, 0) as dead, h.oldest_s,
    coalesce(p.came, 0) as came_per_hour, coalesce(p.started, 0) as started_per_hour,
    case
        when coalesce(h.waiting, 0) = 0 then double(0)
        when p.started > p.came then double(h.waiting) * 3600 / (p.started - p.came)
    end as drains_in_s,
    w.best_hour, greatest(w.slots, 1) as slots, w.workers, w.mean_running / greatest(w.slots, 1) as utilisation,
    ceil(w.demand / 0.7) as slots_needed
from week w
left join have h on h.queue = w.queue
left join pace p on p.queue = w.queue
