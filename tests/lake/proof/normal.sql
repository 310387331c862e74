with current as (
    select f.* from figure f where f.hour >= %(now)s - interval '25 hours'
        and exists (select from figure o where o.queue = f.queue and o.hour <= f.hour - interval '24 hours')
),
weeks as (
    select c.queue, c.hour, c.metric, count(o.value) >= 3 as weekly
    from current c
    left join figure o on o.queue = c.queue and o.metric = c.metric and o.hour < c.hour
        and mod(extract(epoch from c.hour - o.hour), 604800) = 0
    group by 1, 2, 3
),
compared as (
    select c.queue, c.hour, c.metric, c.value, w.weekly, o.value as other
    from current c
    join weeks w using (queue, hour, metric)
    join figure o on o.queue = c.queue and o.metric = c.metric and o.hour < c.hour
        and mod(extract(epoch from c.hour - o.hour), case when w.weekly then 604800 else 86400 end) = 0
),
middle as (
    select c.queue, c.hour, c.metric, c.value, c.weekly, percentile_cont(0.5) within group (order by c.other) as usual, count(c.other) as samples
    from compared c group by 1, 2, 3, 4, 5
),
spread as (
    select m.*, (select 1.4826 * percentile_cont(0.5) within group (order by abs(c.other - m.usual)) from compared c
        where (c.queue, c.hour, c.metric) = (m.queue, m.hour, m.metric)) as deviation
    from middle m
)
select s.queue, s.hour, s.metric, s.value, s.usual, s.deviation, s.samples, s.weekly,
    case when s.samples < 3 or s.value is null then 'too little known'
        when abs(s.value - s.usual) <= 4 * s.deviation + 0.3 * s.usual + case s.metric when 'failing share' then 0.02 when 'p95 wait' then 1 else 10 end
            then 'usual'
        when s.value > s.usual then 'high' else 'low' end as verdict
from spread s
