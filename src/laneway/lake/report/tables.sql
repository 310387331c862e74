-- Queries of the daily tables. They read the views of views.sql; :days are the days that changed.
-- In Spark SQL, of which small.py makes SQLite's: rows come from lists by "lateral view explode(…) x as value" alone, and
-- two whole numbers are divided by try_divide.

-- name: flow
-- Throughput and outcomes [5 minutes, queue, channel, kind]. late: starts later than the objective's wait.
select a.day, a.slot, a.queue, a.channel, a.kind,
    count_if(a.begun) as starts, count_if(a.outcome = 'completed') as completed,
    count_if(a.outcome = 'deferred') as deferred, count_if(a.outcome = 'retried') as retried,
    count_if(a.outcome = 'failed') as failed, count_if(a.outcome = 'expired') as expired,
    count_if(a.outcome = 'given_back') as given_back, count_if(a.outcome = 'cancelled') as cancelled,
    count_if(a.outcome = 'lapsed') as lapsed, count_if(a.outcome = 'redriven') as redriven,
    count_if(a.outcome = 'discarded') as discarded, count_if(a.outcome = 'stale') as stale,
    count_if(a.dead) as dead, count_if(a.wait_us > :objective_us) as late,
    coalesce(sum(a.wait_us), 0) as wait_us, coalesce(sum(a.run_us), 0) as run_us
from attempt a where array_contains(:days, a.day)
group by a.day, a.slot, a.queue, a.channel, a.kind

-- name: latency
-- Waiting and running times [5 minutes, queue, channel, kind, measure], as sketches that can be added up: counts
-- in buckets whose bounds grow by 2 %, so that a percentile of any sum of them is within 1 %. Grouped by numbers: a place is
-- a slot's times 2^32, and a route's.
with own as (
    -- The hint is Spark's: once in their place, rows need not move again to be counted, and counted again.
    select /*+ repartition(place) */ unix_micros(a.slot) div 300000000 * 4294967296 + r.route as place, a.wait_us, a.run_us
    from attempt a
    join route r on r.queue = a.queue and r.channel = a.channel and r.kind = a.kind
    where array_contains(:days, a.day) and a.begun
),
long as (
    select o.place, m.value as running, case m.value when 0 then o.wait_us else o.run_us end as us
    from own o
    lateral view explode(array(0, 1)) m as value
),
bucketed as (
    select l.place, l.running, cast(ceil(ln(greatest(l.us, 1)) / :growth) as int) as bucket,
        count(*) as n, sum(l.us) as us, max(l.us) as most
    from long l
    group by l.place, l.running, bucket
),
sketch as (
    select b.place, b.running, sum(b.n) as n, sum(b.us) as total_us, max(b.most) as max_us,
        array_sort(collect_list(named_struct('bucket', b.bucket, 'n', b.n))) as buckets
    from bucketed b
    group by b.place, b.running
),
timed as (
    select s.*, timestamp_seconds(s.place div 4294967296 * 300) as slot from sketch s
)
select to_date(t.slot) as day, t.slot, r.queue, r.channel, r.kind, case t.running when 0 then 'wait' else 'run' end as measure,
    t.n, t.total_us, t.max_us, t.buckets
from timed t
join route r on r.route = t.place % 4294967296

-- name: lanes
-- The backlog of each channel [5 minutes, queue, channel]: how many messages became due and started in the slot,
-- how many were waiting and running at its end (waiting_before: at its start), and how long the oldest had been
-- waiting then. Slot borders are counted by groups of spans that cross the same ones.
with crossed as (
    select g.queue, g.channel, g.state, b.value as border, sum(g.n) as n, min(g.oldest) as oldest
    from stretch g
    lateral view explode(case when g.last_border >= g.first_border then sequence(g.first_border, g.last_border) end) b as value
    group by g.queue, g.channel, g.state, b.value
),
fact as (
    select c.queue, c.channel, (c.border - 1) * 300 as at, 0 as came, 0 as started,
        case when c.state = 'waiting' then c.n else 0 end as waiting, 0 as waiting_before,
        case when c.state = 'running' then c.n else 0 end as running,
        case when c.state = 'waiting' then (c.border * 300000000 - c.oldest) / 1e6 end as oldest_s
    from crossed c
    union all
    select c.queue, c.channel, c.border * 300, 0, 0, 0, c.n, 0, null
    from crossed c
    where c.state = 'waiting'
    union all
    select g.queue, g.channel, g.first_slot * 300, g.n, 0, 0, 0, 0, null
    from stretch g where g.state = 'waiting'
    union all
    select g.queue, g.channel, g.last_slot * 300, 0, g.n, 0, 0, 0, null
    from stretch g where g.state = 'waiting' and g.started
),
summed as (
    select timestamp_seconds(f.at) as slot, f.queue, f.channel, sum(f.came) as came, sum(f.started) as started,
        sum(f.waiting) as waiting, sum(f.waiting_before) as waiting_before, sum(f.running) as running,
        max(f.oldest_s) as oldest_s
    from fact f
    group by f.at, f.queue, f.channel
)
select to_date(s.slot) as day, s.* from summed s
where array_contains(:days, to_date(s.slot))

-- name: tries
-- How many attempts until success [day, queue, kind, attempt].
select a.day, a.queue, a.kind, a.attempt, count(*) as completed
from attempt a where array_contains(:days, a.day) and a.outcome = 'completed'
group by a.day, a.queue, a.kind, a.attempt

-- name: failures
-- Failures [day, queue, kind, signature]; a signature is type, frame and text.
select s.day, s.queue, s.kind, s.type, s.frame, s.text,
    count(*) as n, count(distinct s.message_id) as messages, count(distinct s.channel) as channels,
    count_if(s.dead) as dead, min(s.ended_at) as first_at, max(s.ended_at) as last_at,
    substr(min(s.said), 1, 2000) as example
from signature s where array_contains(:days, s.day)
group by s.day, s.queue, s.kind, s.type, s.frame, s.text

-- name: crashes
-- Messages whose leases expired [day, message]: a worker crashed, or the work takes longer than its lease. A
-- message with several expired leases on several workers is suspected of crashing them.
select a.day, a.queue, a.channel, a.kind, a.message_id, count(*) as expired, count(distinct a.worker) as workers,
    bool_or(a.dead) as dead, min(a.ended_at) as first_at, max(a.ended_at) as last_at,
    array_sort(collect_set(a.worker)) as worker_names
from attempt a where array_contains(:days, a.day) and a.outcome = 'expired'
group by a.day, a.queue, a.channel, a.kind, a.message_id

-- name: repeats
-- Work done more than once, or nearly [day, queue]. stale: results refused by their fence, by verb; the queue is
-- empty if the message had ended. again: attempts after an expired lease. twice: messages with two ends, which
-- must not happen.
with summed as (
    select a.day, a.queue, count_if(a.outcome = 'stale') as stale,
        count_if(a.outcome = 'stale' and a.reason = 'complete') as stale_complete,
        count_if(a.outcome = 'expired' and not a.dead) as again
    from attempt a where array_contains(:days, a.day)
    group by a.day, a.queue
),
-- Nearly every message ends once: rows that are counted before they move to their place are no fewer.
ended as (
    select /*+ repartition(message_id) */ a.day, a.queue, a.message_id
    from attempt a where array_contains(:days, a.day) and a.terminal
),
message as (
    select e.day, e.queue, e.message_id from ended e group by e.day, e.queue, e.message_id having count(*) > 1
),
several as (
    select m.day, m.queue, count(*) as twice from message m group by m.day, m.queue
)
select s.day, s.queue, s.stale, s.stale_complete, s.again, coalesce(m.twice, 0) as twice
from summed s
left join several m on m.day = s.day and m.queue = s.queue

-- name: tenants
-- What each tenant costs [day, queue, channel]: worker time, the part of it spent on failed attempts, and bytes of
-- payload handled.
select a.day, a.queue, a.channel, count_if(a.begun) as starts, count_if(a.outcome = 'completed') as completed,
    count_if(a.failing) as failing, coalesce(sum(a.run_us), 0) / 1e6 as run_s,
    coalesce(sum(case when a.failing then a.run_us end), 0) / 1e6 as wasted_s,
    coalesce(sum(case when a.begun then a.payload_size end), 0) as bytes
from attempt a where array_contains(:days, a.day) and a.queue <> ''
group by a.day, a.queue, a.channel

-- name: letters
-- What happened to dead letters [day, event]: died (again: after a redrive), redriven, discarded, and
-- recovered: completed after a redrive.
select s.day, s.ended_at as at, s.message_id, s.queue, s.channel, s.kind, 'died' as event, s.redriven_before as again,
    s.type, s.frame, s.text
from signature s where array_contains(:days, s.day) and s.dead
union all
select a.day, a.ended_at, a.message_id, a.queue, a.channel, a.kind,
    case a.outcome when 'completed' then 'recovered' else a.outcome end, a.redriven_before, null, null, null
from attempt a
where array_contains(:days, a.day) and (a.outcome in ('redriven', 'discarded') or (a.outcome = 'completed' and a.redriven_before))

-- name: percentiles
-- Percentiles in seconds, from merged sketches [hour by queue; day by queue, by channel, by kind]. Columns that are
-- not part of a row's grain are null. Grouped by numbers: grains are 0 to 3, hours and days are counted from 1970, and a place
-- is made of hour (of a day its first), grain, route and measure.
with own as (
    select unix_seconds(l.slot) div 3600 as hour, case l.measure when 'wait' then 0 else 1 end as running,
        r.route, r.of_queue, l.buckets
    from latency l
    join route r on r.queue = l.queue and r.channel = l.channel and r.kind = l.kind
    where array_contains(:days, l.day)
),
hourly as (
    select o.hour, o.of_queue as route, o.running, b.value.bucket as bucket, sum(b.value.n) as n
    from own o
    lateral view explode(o.buckets) b as value
    group by o.hour, o.of_queue, o.running, b.value.bucket
),
daily as (
    select o.hour div 24 as day, o.route, o.running, b.value.bucket as bucket, sum(b.value.n) as n
    from own o
    lateral view explode(o.buckets) b as value
    group by o.hour div 24, o.route, o.running, b.value.bucket
),
merged as (
    select case g.value when 0 then h.hour else h.hour div 24 * 24 end as hour, g.value as grain,
        h.route, h.running, h.bucket, h.n
    from hourly h
    lateral view explode(array(0, 1)) g as value
    union all
    select d.day * 24, g.value, case g.value when 2 then r.of_channel else r.of_kind end, d.running, d.bucket, d.n
    from daily d
    join route r on r.route = d.route
    lateral view explode(array(2, 3)) g as value
),
placed as (
    select ((m.hour * 4 + m.grain) * 4294967296 + m.route) * 2 + m.running as place, m.bucket, sum(m.n) as n
    from merged m
    group by place, m.bucket
),
ranked as (
    select p.*, sum(p.n) over (partition by p.place order by p.bucket) as up_to, sum(p.n) over (partition by p.place) as whole
    from placed p
),
valued as (
    -- The value of a bucket with the smallest relative error.
    select r.*, 2 * exp(r.bucket * :growth) / (exp(:growth) + 1) / 1e6 as seconds from ranked r
),
found as (
    select v.place, max(v.whole) as n,
        min(case when v.up_to * 100 >= 50 * v.whole then v.seconds end) as p50,
        min(case when v.up_to * 100 >= 95 * v.whole then v.seconds end) as p95,
        min(case when v.up_to * 100 >= 99 * v.whole then v.seconds end) as p99
    from valued v
    group by v.place
),
-- What a place is made of.
known as (
    select f.*, timestamp_seconds(f.place div 34359738368 * 3600) as hour, f.place div 8589934592 % 4 as grain,
        f.place div 2 % 4294967296 as route, f.place % 2 as running
    from found f
)
select to_date(k.hour) as day, case k.grain when 0 then 'hour' when 1 then 'day' when 2 then 'channel' else 'kind' end as grain,
    case when k.grain = 0 then k.hour end as hour, r.queue, case when k.grain = 2 then r.channel end as channel,
    case when k.grain = 3 then r.kind end as kind, case k.running when 0 then 'wait' else 'run' end as measure,
    k.n, k.p50, k.p95, k.p99
from known k
join route r on r.route = k.route

-- name: hours
-- Load and capacity [hour, queue]: how many messages became due and started; how many waited and ran on average
-- (time-weighted, from the spans) and at most (waiting: every 5 minutes); and what Little's law says the
-- averages should be: rate × mean time. little_* is the law's result divided by the observed average.
with border as (
    select l.queue, l.slot, sum(l.came) as came, sum(l.started) as started, sum(l.waiting) as waiting,
        max(l.oldest_s) as oldest_s
    from lanes l where array_contains(:days, l.day)
    group by l.queue, l.slot
),
met as (
    select b.queue, date_trunc('HOUR', b.slot) as hour, sum(b.came) as came, sum(b.started) as started,
        max(b.waiting) as waiting_peak, max_by(b.waiting, b.slot) as waiting_last,
        max(b.oldest_s) as oldest_s
    from border b
    group by b.queue, date_trunc('HOUR', b.slot)
),
change as (
    select s.queue, s.began_us as at, 1 as step from span s where s.ended_us is not null
    union all
    select s.queue, s.ended_us, -1 from span s where s.ended_us is not null and not s.alive
    union all
    -- Includes those that were running when the hour began.
    select b.queue, b.hour * 3600000000, 0 from busy b
),
crowd as (
    -- Minute by minute, from what was running when the minute began: each has few to sort.
    select c.at div 60000000 as minute, c.queue, c.step,
        sum(c.step) over (partition by c.at div 60000000, c.queue order by c.at, c.step) as running
    from change c
),
most as (
    select c.queue, c.minute, max(c.running) as running, sum(c.step) as step from crowd c group by c.queue, c.minute
),
peak as (
    select o.queue, o.minute div 60 as hour, max(o.running) as running
    from (
        select m.queue, m.minute, m.running + sum(m.step) over (partition by m.queue order by m.minute) - m.step as running
        from most m
    ) o
    group by o.queue, o.minute div 60
),
ended as (
    select a.queue, a.hour, count_if(a.begun) as starts_ended, count_if(a.outcome = 'completed') as completed,
        count_if(a.failing) as failing, count_if(a.dead) as dead, count_if(a.wait_us > :objective_us) as late,
        coalesce(sum(a.wait_us), 0) as wait_us, coalesce(sum(a.run_us), 0) as run_us, count(distinct a.worker) as workers
    from attempt a where array_contains(:days, a.day) and a.queue <> ''
    group by a.queue, a.hour
),
place as (
    select m.queue, m.hour from met m
    union
    select e.queue, e.hour from ended e
    union
    select b.queue, timestamp_seconds(b.hour * 3600) from busy b
)
select to_date(p.hour) as day, p.hour, p.queue, coalesce(m.came, 0) as came, coalesce(m.started, 0) as started,
    coalesce(m.waiting_peak, 0) as waiting_peak, coalesce(m.waiting_last, 0) as waiting_last,
    coalesce(k.running, 0) as running_peak, m.oldest_s,
    coalesce(e.starts_ended, 0) as starts_ended, coalesce(e.completed, 0) as completed, coalesce(e.failing, 0) as failing,
    coalesce(e.dead, 0) as dead, coalesce(e.late, 0) as late, coalesce(e.workers, 0) as workers,
    coalesce(b.waited_us, 0) / 3600e6 as mean_waiting, coalesce(b.ran_us, 0) / 3600e6 as mean_running,
    try_divide(e.wait_us, e.starts_ended) / 1e6 as mean_wait_s, try_divide(e.run_us, e.starts_ended) / 1e6 as mean_run_s,
    try_divide(e.wait_us, b.waited_us) as little_waiting, try_divide(e.run_us, b.ran_us) as little_running
from place p
left join met m on m.queue = p.queue and m.hour = p.hour
left join ended e on e.queue = p.queue and e.hour = p.hour
left join busy b on b.queue = p.queue and b.hour = unix_seconds(p.hour) div 3600
left join peak k on k.queue = p.queue and k.hour = unix_seconds(p.hour) div 3600
where array_contains(:days, to_date(p.hour))

-- name: fairness
-- Fairness [hour, queue]: Jain's index of the starts of the channels that had a backlog at both ends of a slot
-- (1 = equal shares), averaged over the slots and weighted by starts; the top channel's share of all starts;
-- and the p95 wait of the quiet channels, those with less than an equal share.
with contest as (
    select l.queue, l.slot, count(*) as channels, sum(l.started) as starts,
        try_divide(pow(sum(l.started), 2), count(*) * sum(pow(l.started, 2))) as jain
    from lanes l where array_contains(:days, l.day) and l.waiting_before > 0 and l.waiting > 0
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
        try_divide(max(r.starts), max(r.whole)) as top_share, max_by(r.channel, struct(r.starts, r.channel)) as top_channel
    from ranked r
    group by r.day, r.queue, r.hour
),
quiet as (
    select r.queue, r.hour, b.value.bucket as bucket, sum(b.value.n) as n
    from ranked r
    join latency l on l.day = r.day and l.queue = r.queue and l.channel = r.channel
        and date_trunc('HOUR', l.slot) = r.hour and l.measure = 'wait'
    lateral view explode(l.buckets) b as value
    where r.starts * r.channels < r.whole
    group by r.queue, r.hour, b.value.bucket
),
counted as (
    select q.*, sum(q.n) over (partition by q.queue, q.hour order by q.bucket) as up_to,
        sum(q.n) over (partition by q.queue, q.hour) as whole
    from quiet q
),
waited as (
    select c.queue, c.hour,
        min(case when c.up_to * 100 >= 95 * c.whole
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
