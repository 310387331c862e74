-- The expected backlog [queue, hour of the next 24]: usual arrivals of that hour (the median of the same hours of the
-- week, else of the day) against the best hour of the last week.
with ahead as (
    select q.queue, explode(sequence(date_trunc('HOUR', :now), date_trunc('HOUR', :now) + interval 23 hours, interval 1 hour)) as hour
    from (select distinct h.queue from hours h) q
),
usual as (
    select a.queue, a.hour,
        coalesce(median(m.value) filter (where (unix_seconds(a.hour) - unix_seconds(m.hour)) % 604800 = 0),
            median(m.value), 0) as expected
    from ahead a
    left join metric m on m.queue = a.queue and m.metric = 'came' and (unix_seconds(a.hour) - unix_seconds(m.hour)) % 86400 = 0
    group by a.queue, a.hour
),
best as (
    select h.queue, max(h.started) as capacity
    from hours h
    where h.hour >= :now - interval 7 days
    group by h.queue
),
have as (
    select l.queue, count_if(l.state = 'waiting') as waiting from live l group by l.queue
),
summed as (
    select u.queue, u.hour, u.expected, coalesce(b.capacity, 0) as capacity, coalesce(h.waiting, 0) as waiting,
        sum(u.expected - coalesce(b.capacity, 0)) over (partition by u.queue order by u.hour) as excess
    from usual u
    left join best b on b.queue = u.queue
    left join have h on h.queue = u.queue
)
select s.queue, s.hour, s.expected, s.capacity,
    s.excess - least(-s.waiting, min(s.excess) over (partition by s.queue order by s.hour)) as backlog
from summed s
