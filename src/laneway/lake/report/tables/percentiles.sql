-- Percentiles in seconds, from merged sketches [hour by queue; day by queue, by channel, by kind]. Columns that are
-- not part of a row's grain are null.
with piece as (
    select l.day, date_trunc('HOUR', l.slot) as hour, l.queue, l.channel, l.kind, l.measure, b.bucket, b.n
    from latency l
    lateral view explode(l.buckets) x as b
    where array_contains(:days, l.day)
),
merged as (
    select p.day, p.hour, p.queue, p.channel, p.kind, p.measure, p.bucket, sum(p.n) as n,
        case
            when grouping(p.hour) = 0 then 'hour'
            when grouping(p.channel) = 0 then 'channel'
            when grouping(p.kind) = 0 then 'kind'
            else 'day'
        end as grain
    from piece p
    group by grouping sets (
        (p.day, p.hour, p.queue, p.measure, p.bucket), (p.day, p.queue, p.measure, p.bucket),
        (p.day, p.queue, p.channel, p.measure, p.bucket), (p.day, p.queue, p.kind, p.measure, p.bucket))
),
ranked as (
    select m.*,
        sum(m.n) over (partition by m.day, m.grain, m.hour, m.queue, m.channel, m.kind, m.measure order by m.bucket) as up_to,
        sum(m.n) over (partition by m.day, m.grain, m.hour, m.queue, m.channel, m.kind, m.measure) as whole
    from merged m
),
valued as (
    -- The value of a bucket with the smallest relative error.
    select r.*, 2 * exp(r.bucket * :growth) / (exp(:growth) + 1) / 1e6 as seconds from ranked r
)
select v.day, v.grain, v.hour, v.queue, v.channel, v.kind, v.measure,
    max(v.whole) as n,
    min(case when v.up_to >= ceil(0.50 * v.whole) then v.seconds end) as p50,
    min(case when v.up_to >= ceil(0.95 * v.whole) then v.seconds end) as p95,
    min(case when v.up_to >= ceil(0.99 * v.whole) then v.seconds end) as p99
from valued v
group by v.day, v.grain, v.hour, v.queue, v.channel, v.kind, v.measure
