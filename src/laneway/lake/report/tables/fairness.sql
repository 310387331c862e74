-- Fairness [hour, queue]: Jain's index of the starts of the channels that had a backlog at both ends of a slot
-- (1 = equal shares), averaged over the slots and weighted by starts; the top channel's share of all starts;
-- and the p95 wait of the quiet channels, those with less than an equal share.
with contest as (
    select l.queue, l.slot, count(*) as channels, sum(l.started) as starts,
        try_divide(pow(sum(l.started), 2), count(*) * sum(pow(l.started, 2))) as jain
    from lanes l
    where array_contains(:days, l.day) and l.waiting_before > 0 and l.waiting > 0
    group by l.queue, l.slot
    having count(*) > 1 and sum(l.started) > 0
),
judged as (
    select c.queue, date_trunc('HOUR', c.slot) as hour, count(*) as contested_slots, max(c.channels) as contenders,
        sum(c.jain * c.starts) / sum(c.starts) as jain, min(c.jain) as worst_jain
    from contest c
    group by c.queue, date_trunc('HOUR', c.slot)
),
share as (
    select f.day, f.queue, date_trunc('HOUR', f.slot) as hour, f.channel, sum(f.starts) as starts
    from flow f
    where array_contains(:days, f.day)
    group by f.day, f.queue, date_trunc('HOUR', f.slot), f.channel
    having sum(f.starts) > 0
),
ranked as (
    select s.*, sum(s.starts) over (partition by s.day, s.queue, s.hour) as whole,
        count(*) over (partition by s.day, s.queue, s.hour) as channels
    from share s
),
top as (
    select r.day, r.queue, r.hour, max(r.channels) as channels, max(r.whole) as starts,
        max(r.starts) / max(r.whole) as top_share, max_by(r.channel, struct(r.starts, r.channel)) as top_channel
    from ranked r
    group by r.day, r.queue, r.hour
),
quiet as (
    select r.queue, r.hour, b.bucket, sum(b.n) as n
    from ranked r
    join latency l on l.day = r.day and l.queue = r.queue and l.channel = r.channel
        and date_trunc('HOUR', l.slot) = r.hour and l.measure = 'wait'
    lateral view explode(l.buckets) x as b
    where r.starts * r.channels < r.whole
    group by r.queue, r.hour, b.bucket
),
counted as (
    select q.*, sum(q.n) over (partition by q.queue, q.hour order by q.bucket) as up_to,
        sum(q.n) over (partition by q.queue, q.hour) as whole
    from quiet q
),
waited as (
    select c.queue, c.hour,
        min(case when c.up_to >= ceil(0.95 * c.whole)
            then 2 * exp(c.bucket * :growth) / (exp(:growth) + 1) / 1e6 end) as quiet_p95
    from counted c
    group by c.queue, c.hour
)
select p.day, p.hour, p.queue, p.channels, p.starts, p.top_channel, p.top_share,
    coalesce(j.contested_slots, 0) as contested_slots, coalesce(j.contenders, 0) as contenders,
    j.jain, j.worst_jain, w.quiet_p95
from top p
left join judged j on j.queue = p.queue and j.hour = p.hour
left join waited w on w.queue = p.queue and w.hour = p.hour
