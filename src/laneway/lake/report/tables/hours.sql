-- Load and capacity [hour, queue]: how many messages became due and started; how many waited and ran on average
-- (time-weighted, from the spans) and at most (waiting: every 5 minutes); and what Little's law says the
-- averages should be: rate × mean time. little_* is the law's result divided by the observed average.
with part as (
    -- Spans of the same hours are summed before they are spread over the hours.
    select s.queue, s.state, cast(floor(s.begins / 3600e6) as bigint) as first_hour,
        cast(floor(greatest(s.ends - 1, s.begins) / 3600e6) as bigint) as last_hour, count(*) as n,
        sum(s.begins - cast(floor(s.begins / 3600e6) as bigint) * 3600000000) as begins,
        sum(s.ends - cast(floor(greatest(s.ends - 1, s.begins) / 3600e6) as bigint) * 3600000000) as ends
    from span s
    group by s.queue, s.state, first_hour, last_hour
),
spread as (
    select p.queue, p.state, h.hour,
        case when h.hour = p.last_hour then p.ends else p.n * 3600000000 end
            - case when h.hour = p.first_hour then p.begins else 0 end as us
    from part p
    lateral view explode(sequence(p.first_hour, p.last_hour)) h as hour
),
busy as (
    select s.queue, s.hour, sum(case when s.state = 'waiting' then s.us else 0 end) as waited_us,
        sum(case when s.state = 'running' then s.us else 0 end) as ran_us
    from spread s
    group by s.queue, s.hour
),
border as (
    select l.queue, l.slot, sum(l.came) as came, sum(l.started) as started, sum(l.waiting) as waiting,
        max(l.oldest_s) as oldest_s
    from lanes l
    where array_contains(:days, l.day)
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
    select s.queue, s.begins as at, 1 as step from span s where s.state = 'running'
    union all
    select s.queue, s.ends, -1 from span s where s.state = 'running' and not s.alive
    union all
    -- Includes those that were running when the hour began.
    select b.queue, b.hour * 3600000000, 0 from busy b
),
crowd as (
    select c.queue, c.at, sum(c.step) over (partition by c.queue order by c.at, c.step) as running from change c
),
peak as (
    select c.queue, c.at div 3600000000 as hour, max(c.running) as running from crowd c
    group by c.queue, c.at div 3600000000
),
ended as (
    select a.queue, a.hour, count_if(a.begun) as starts_ended, count_if(a.outcome = 'completed') as completed,
        count_if(a.failing) as failing, count_if(a.dead) as dead, count_if(a.wait_us > :objective_us) as late,
        coalesce(sum(a.wait_us), 0) as wait_us, coalesce(sum(a.run_us), 0) as run_us, count(distinct a.worker) as workers
    from attempt a
    where array_contains(:days, a.day) and a.queue <> ''
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
