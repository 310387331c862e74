-- Throughput and outcomes [5 minutes, queue, channel, kind]. late: starts later than the objective's wait.
select a.day, a.slot, a.queue, a.channel, a.kind,
    count_if(a.begun) as starts,
    count_if(a.outcome = 'completed') as completed,
    count_if(a.outcome = 'deferred') as deferred,
    count_if(a.outcome = 'retried') as retried,
    count_if(a.outcome = 'failed') as failed,
    count_if(a.outcome = 'expired') as expired,
    count_if(a.outcome = 'given_back') as given_back,
    count_if(a.outcome = 'cancelled') as cancelled,
    count_if(a.outcome = 'lapsed') as lapsed,
    count_if(a.outcome = 'redriven') as redriven,
    count_if(a.outcome = 'discarded') as discarded,
    count_if(a.outcome = 'stale') as stale,
    count_if(a.dead) as dead,
    count_if(a.wait_us > :objective_us) as late,
    coalesce(sum(a.wait_us), 0) as wait_us,
    coalesce(sum(a.run_us), 0) as run_us
from attempt a
where array_contains(:days, a.day)
group by a.day, a.slot, a.queue, a.channel, a.kind
