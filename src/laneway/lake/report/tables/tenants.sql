-- What each tenant costs [day, queue, channel]: worker time, the part of it spent on failed attempts, and bytes of
-- payload handled.
select a.day, a.queue, a.channel, count_if(a.begun) as starts, count_if(a.outcome = 'completed') as completed,
    count_if(a.failing) as failing, coalesce(sum(a.run_us), 0) / 1e6 as run_s,
    coalesce(sum(case when a.failing then a.run_us end), 0) / 1e6 as wasted_s,
    coalesce(sum(case when a.begun then a.payload_size end), 0) as bytes
from attempt a
where array_contains(:days, a.day) and a.queue <> ''
group by a.day, a.queue, a.channel
