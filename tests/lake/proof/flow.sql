select f.day, f.slot, f.queue, f.channel, f.kind,
    count(*) filter (where f.begun) as starts,
    count(*) filter (where f.outcome = 'completed') as completed, count(*) filter (where f.outcome = 'deferred') as deferred,
    count(*) filter (where f.outcome = 'retried') as retried, count(*) filter (where f.outcome = 'failed') as failed,
    count(*) filter (where f.outcome = 'expired') as expired, count(*) filter (where f.outcome = 'given_back') as given_back,
    count(*) filter (where f.outcome = 'cancelled') as cancelled, count(*) filter (where f.outcome = 'lapsed') as lapsed,
    count(*) filter (where f.outcome = 'redriven') as redriven, count(*) filter (where f.outcome = 'discarded') as discarded,
    count(*) filter (where f.outcome = 'stale') as stale, count(*) filter (where f.dead) as dead,
    count(*) filter (where f.claimed_at - f.ready > %(objective)s and f.begun) as late,
    coalesce(sum(f.waited), 0) as wait_us, coalesce(sum(f.ran), 0) as run_us
from fact f
group by f.day, f.slot, f.queue, f.channel, f.kind
