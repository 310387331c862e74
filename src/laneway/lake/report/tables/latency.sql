-- Waiting and running times [5 minutes, queue, channel, kind, measure], as sketches that can be added up: counts
-- in buckets whose bounds grow by 2 %, so that a percentile of any sum of them is within 1 %.
with long as (
    select a.day, a.slot, a.queue, a.channel, a.kind, m.measure, m.us
    from attempt a
    lateral view stack(2, 'wait', a.wait_us, 'run', a.run_us) m as measure, us
    where array_contains(:days, a.day) and a.begun
),
bucketed as (
    select l.day, l.slot, l.queue, l.channel, l.kind, l.measure,
        cast(ceil(ln(greatest(l.us, 1)) / :growth) as int) as bucket,
        count(*) as n, sum(l.us) as us, max(l.us) as most
    from long l
    group by l.day, l.slot, l.queue, l.channel, l.kind, l.measure, bucket
)
select b.day, b.slot, b.queue, b.channel, b.kind, b.measure,
    sum(b.n) as n, sum(b.us) as total_us, max(b.most) as max_us,
    array_sort(collect_list(named_struct('bucket', b.bucket, 'n', b.n))) as buckets
from bucketed b
group by b.day, b.slot, b.queue, b.channel, b.kind, b.measure
