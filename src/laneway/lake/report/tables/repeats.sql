-- Work done more than once, or nearly [day, queue]. stale: results refused by their fence, by verb; the queue is
-- empty if the message had ended. again: attempts after an expired lease. twice: messages with two ends, which
-- must not happen.
with message as (
    select a.day, a.queue, a.message_id, count_if(a.outcome = 'stale') as stale,
        count_if(a.outcome = 'stale' and a.reason = 'complete') as stale_complete,
        count_if(a.outcome = 'expired' and not a.dead) as again, count_if(a.terminal) as ends
    from attempt a
    where array_contains(:days, a.day)
    group by a.day, a.queue, a.message_id
)
select m.day, m.queue, sum(m.stale) as stale, sum(m.stale_complete) as stale_complete, sum(m.again) as again,
    count_if(m.ends > 1) as twice
from message m
group by m.day, m.queue
