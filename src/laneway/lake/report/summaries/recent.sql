-- What happened lately, by tenant [queue, channel]: attempts that ended in the last 24 hours (and in the last 60
-- minutes: last_*), how many of them failed, how many messages died, and what is waiting now.
with ended as (
    select f.queue, f.channel, sum(f.completed) as completed, sum(f.retried + f.failed + f.expired) as failing,
        sum(f.dead) as died,
        coalesce(sum(f.completed) filter (where f.slot >= :now - interval 60 minutes), 0) as last_completed,
        coalesce(sum(f.retried + f.failed + f.expired) filter (where f.slot >= :now - interval 60 minutes), 0) as last_failing
    from flow f
    where f.queue <> '' and f.slot >= :now - interval 24 hours
    group by f.queue, f.channel
),
have as (
    select l.queue, l.channel, count(*) as waiting, max((unix_micros(l.seen_at) - unix_micros(l.due)) / 1e6) as oldest_s
    from live l
    where l.state = 'waiting'
    group by l.queue, l.channel
)
select coalesce(e.queue, h.queue) as queue, coalesce(e.channel, h.channel) as channel,
    coalesce(e.completed, 0) as completed, coalesce(e.failing, 0) as failing, coalesce(e.died, 0) as died,
    coalesce(e.last_completed, 0) as last_completed, coalesce(e.last_failing, 0) as last_failing,
    coalesce(h.waiting, 0) as waiting, h.oldest_s
from ended e
full join have h on h.queue = e.queue and h.channel = e.channel
