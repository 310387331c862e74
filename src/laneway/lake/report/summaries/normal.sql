-- Is this normal for the hour of the week [queue, hour of the last 24, metric]: the median of the same hours before
-- (of the week if there are three, else of the day), and their robust deviation (1.4826 × the median absolute
-- deviation).
with pair as (
    select m.queue, m.hour, m.metric, m.value, o.value as other,
        (unix_seconds(m.hour) - unix_seconds(o.hour)) % 604800 = 0 as same_week_hour
    from metric m
    join metric o on o.queue = m.queue and o.metric = m.metric and o.hour < m.hour
        and (unix_seconds(m.hour) - unix_seconds(o.hour)) % 86400 = 0
    where m.hour >= :now - interval 25 hours
),
basis as (
    select p.*, count_if(p.same_week_hour and p.other is not null) over (partition by p.queue, p.hour, p.metric) >= 3 as weekly from pair p
),
compared as (
    select b.*, median(b.other) over (partition by b.queue, b.hour, b.metric) as usual
    from basis b
    where b.same_week_hour or not b.weekly
),
spread as (
    select c.queue, c.hour, c.metric, c.weekly, max(c.value) as value, max(c.usual) as usual, count(c.other) as samples,
        1.4826 * median(abs(c.other - c.usual)) as deviation
    from compared c
    group by c.queue, c.hour, c.metric, c.weekly
)
select s.queue, s.hour, s.metric, s.value, s.usual, s.deviation, s.samples, s.weekly,
    case
        when s.samples < 3 or s.value is null then 'too little known'
        when abs(s.value - s.usual) <= 4 * s.deviation + 0.3 * s.usual
            + case s.metric when 'failing share' then 0.02 when 'p95 wait' then 1.0 else 10 end then 'usual'
        when s.value > s.usual then 'high'
        else 'low'
    end as verdict
from spread s
