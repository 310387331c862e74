-- Queries of the tables over all days, in Spark SQL of which small.py makes SQLite's (see tables.sql).

-- name: metric
-- View: four metrics for each queue and hour; an hour without messages counts as zero. Shares and percentiles of
-- fewer than 20 starts are null, because they would only be noise.
with range as (
    select b.queue, x.value as hour
    from (select h.queue, min(h.hour) as hour from hours h where h.hour < date_trunc('HOUR', :now) group by h.queue) b
    lateral view explode(sequence(b.hour, date_trunc('HOUR', :now) - interval 1 hour, interval 1 hour)) x as value
),
wide as (
    select r.queue, r.hour, coalesce(h.came, 0) as came, coalesce(h.completed, 0) as completed,
        case when h.starts_ended >= 20 then try_divide(h.failing, h.starts_ended) end as failing,
        case when h.starts_ended >= 20 then p.p95 end as wait
    from range r
    left join hours h on h.queue = r.queue and h.hour = r.hour
    left join percentiles p on p.grain = 'hour' and p.measure = 'wait' and p.queue = r.queue and p.hour = r.hour
)
select w.queue, w.hour, m.value as metric,
    case m.value when 'came' then double(w.came) when 'completed' then double(w.completed) when 'failing share' then w.failing else w.wait end as value
from wide w
lateral view explode(array('came', 'completed', 'failing share', 'p95 wait')) m as value

-- name: signatures
-- Every failure ever seen [queue, kind, signature]: since when, how often in the last 24 hours, and whether it is new:
-- first seen in these hours, in a lake with older history.
select f.queue, f.kind, f.type, f.frame, f.text, sum(f.n) as n, sum(f.dead) as dead, max(f.channels) as channels,
    min(f.first_at) as first_at, max(f.last_at) as last_at,
    coalesce(sum(f.n) filter (where f.day = to_date(:now)), 0) as today,
    coalesce(sum(f.n) filter (where f.day = date_sub(to_date(:now), 1)), 0) as yesterday,
    min(f.first_at) >= :now - interval 24 hours
        and (select min(h.hour) from hours h) < :now - interval 24 hours as is_new,
    max_by(f.example, f.last_at) as example
from failures f
group by f.queue, f.kind, f.type, f.frame, f.text

-- name: redrive
-- Which dead letters to redrive, to fix first, or to discard [queue, kind, signature of the last error], and what
-- happened after earlier redrives. Code that has failed on a message fails on it again: only errors of something else
-- that was away (a timeout, a connection), and those whose redrives have recovered, are worth a redrive as they are.
with message as (
    select l.message_id, l.queue, l.kind,
        count_if(l.event = 'died') as died, count_if(l.event = 'redriven') as redriven,
        count_if(l.event = 'discarded') as discarded, count_if(l.event = 'recovered') as recovered,
        count_if(l.event = 'died' and l.again) as died_again,
        max_by(l.type, l.at) filter (where l.event = 'died') as type, max_by(l.frame, l.at) filter (where l.event = 'died') as frame,
        max_by(l.text, l.at) filter (where l.event = 'died') as text,
        max(l.at) filter (where l.event = 'died') as died_at
    from letters l
    group by l.message_id, l.queue, l.kind
),
grouped as (
    select m.queue, m.kind, m.type, m.frame, m.text,
        count_if(m.died > m.redriven + m.discarded) as letters,
        min(m.died_at) filter (where m.died > m.redriven + m.discarded) as oldest,
        count_if(m.redriven > 0) as redriven, count_if(m.recovered > 0) as recovered,
        count_if(m.died_again > 0) as died_again, count_if(m.discarded > 0) as discarded
    from message m
    where m.died > 0
    group by m.queue, m.kind, m.type, m.frame, m.text
),
seen as (
    select g.*, s.last_at
    from grouped g
    join signatures s on s.queue = g.queue and s.kind = g.kind and s.type = g.type and s.frame = g.frame and s.text = g.text
),
since as (
    select s.queue, s.kind, s.type, s.frame, s.text, sum(f.completed) as completed
    from seen s
    join flow f on f.queue = s.queue and f.kind = s.kind and f.slot > s.last_at
    group by s.queue, s.kind, s.type, s.frame, s.text
),
known as (
    select s.*, coalesce(c.completed, 0) as completed_since
    from seen s
    left join since c on c.queue = s.queue and c.kind = s.kind and c.type = s.type and c.frame = s.frame and c.text = s.text
)
select k.*,
    case
        when k.letters = 0 then 'nothing left'
        when k.died_again > 0 and k.died_again * 2 >= k.redriven then 'discard'
        when k.type = 'LeaseExpired' then 'fix first'
        when k.last_at > :now - interval 6 hours then 'fix first'
        when k.completed_since = 0 then 'fix first'
        when k.recovered = 0 and not lower(k.type) rlike 'timeout|timedout|connection|unavailable|network|temporar|throttl|toomany|ratelimit|deadlock|serialization|operationalerror|brokenpipe'
            then 'fix first'
        else 'redrive'
    end as advice
from known k

-- name: slo
-- Is the objective met [queue, window]: the share of late starts, and the burn rate of the error budget.
select f.queue, w.value as window_hours, sum(f.starts) as starts, sum(f.late) as late,
    try_divide(sum(f.late), sum(f.starts)) as late_share,
    try_divide(sum(f.late), sum(f.starts)) / (1 - :target) as burn
from flow f
lateral view explode(array(1, 6, 24, 72)) w as value
where f.queue <> '' and f.slot >= :now - make_dt_interval(0, w.value)
group by f.queue, w.value

-- name: normal
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

-- name: forecast
-- The expected backlog [queue, hour of the next 24]: usual arrivals of that hour (the median of the same hours of the
-- week, else of the day) against the best hour of the last week.
with ahead as (
    select q.queue, x.value as hour
    from (select distinct h.queue from hours h) q
    lateral view explode(sequence(date_trunc('HOUR', :now), date_trunc('HOUR', :now) + interval 23 hours, interval 1 hour)) x as value
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

-- name: outlook
-- The state now, and when the backlog will be gone [queue]: what is waiting, arrivals and starts per hour (the slots that
-- began in the last 60 minutes), when the backlog is gone at this pace (null: never), the peak of running attempts, how busy the
-- workers are, and how many would be needed at 70 % utilisation.
with have as (
    select l.queue, count_if(l.state = 'waiting') as waiting, count_if(l.state = 'scheduled') as scheduled,
        count_if(l.state = 'leased') as leased, count_if(l.state = 'dead') as dead,
        max(case when l.state = 'waiting' then (unix_micros(l.seen_at) - unix_micros(l.due)) / 1e6 end) as oldest_s
    from live l
    group by l.queue
),
pace as (
    select l.queue, sum(l.came) as came, sum(l.started) as started
    from lanes l
    where l.slot >= :now - interval 60 minutes and l.slot <= :now
    group by l.queue
),
week as (
    select h.queue, max(h.started) as best_hour, max(h.running_peak) as slots, max(h.workers) as workers,
        -- The current hour is not over: its mean would be too low.
        coalesce(max_by(h.mean_running, h.hour) filter (where h.hour < date_trunc('HOUR', :now)),
            max_by(h.mean_running, h.hour)) as mean_running, max(h.came * coalesce(h.mean_run_s, 0)) / 3600 as demand
    from hours h
    where h.hour >= :now - interval 7 days
    group by h.queue
)
select w.queue, coalesce(h.waiting, 0) as waiting, coalesce(h.scheduled, 0) as scheduled,
    coalesce(h.leased, 0) as leased, coalesce(h.dead, 0) as dead, h.oldest_s,
    coalesce(p.came, 0) as came_per_hour, coalesce(p.started, 0) as started_per_hour,
    case
        when coalesce(h.waiting, 0) = 0 then double(0)
        when p.started > p.came then double(h.waiting) * 3600 / (p.started - p.came)
    end as drains_in_s,
    w.best_hour, greatest(w.slots, 1) as slots, w.workers, w.mean_running / greatest(w.slots, 1) as utilisation,
    ceil(w.demand / 0.7) as slots_needed
from week w
left join have h on h.queue = w.queue
left join pace p on p.queue = w.queue

-- name: recent
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
),
place as (
    select e.queue, e.channel from ended e
    union
    select h.queue, h.channel from have h
)
select p.queue, p.channel,
    coalesce(e.completed, 0) as completed, coalesce(e.failing, 0) as failing, coalesce(e.died, 0) as died,
    coalesce(e.last_completed, 0) as last_completed, coalesce(e.last_failing, 0) as last_failing,
    coalesce(h.waiting, 0) as waiting, h.oldest_s
from place p
left join ended e on e.queue = p.queue and e.channel = p.channel
left join have h on h.queue = p.queue and h.channel = p.channel
