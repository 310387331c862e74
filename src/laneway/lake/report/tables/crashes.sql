-- Messages whose leases expired [day, message]: a worker crashed, or the work takes longer than its lease. A
-- message with several expired leases on several workers is suspected of crashing them.
select a.day, a.queue, a.channel, a.kind, a.message_id, count(*) as expired, count(distinct a.worker) as workers,
    bool_or(a.dead) as dead, min(a.ended_at) as first_at, max(a.ended_at) as last_at,
    array_sort(collect_set(a.worker)) as worker_names
from attempt a
where array_contains(:days, a.day) and a.outcome = 'expired'
group by a.day, a.queue, a.channel, a.kind, a.message_id
