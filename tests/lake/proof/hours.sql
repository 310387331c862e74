with busy as (
    select p.queue, h.at as hour,
        sum(extract(epoch from least(p.ends, h.at + interval '1 hour') - greatest(p.begins, h.at))) filter (where p.state = 'waiting') as waited,
        sum(extract(epoch from least(p.ends, h.at + interval '1 hour') - greatest(p.begins, h.at))) filter (where p.state = 'running') as ran
    from period p
    cross join lateral generate_series(date_bin('1 hour', p.begins, timestamptz 'epoch'),
        greatest(p.ends - interval '1 microsecond', p.begins), interval '1 hour') h (at)
    group by p.queue, h.at
),
slots as (
    select l.queue, l.slot, sum(l.came) as came, sum(l.started) as started, sum(l.waiting) as waiting, max(l.oldest_s) as oldest_s
    from lanes l group by l.queue, l.slot
),
met as (
    select s.queue, date_bin('1 hour', s.slot, timestamptz 'epoch') as hour, sum(s.came) as came, sum(s.started) as started,
        max(s.waiting) as waiting_peak, (array_agg(s.waiting order by s.slot desc))[1] as waiting_last, max(s.oldest_s) as oldest_s
    from slots s group by 1, 2
),
ended as (
    select f.queue, f.hour, count(*) filter (where f.begun) as n, count(*) filter (where f.outcome = 'completed') as completed,
        count(*) filter (where f.failing) as failing, count(*) filter (where f.dead) as dead,
        count(*) filter (where f.begun and f.claimed_at - f.ready > %(objective)s) as late, count(distinct f.worker) as workers,
        sum(f.waited) / 1000000.0 as waited, sum(f.ran) / 1000000.0 as ran
    from fact f where f.queue <> '' group by f.queue, f.hour
),
moment as (
    -- How many run changes only at these; at the border of an hour it may be most.
    select p.queue, p.begins as at, 1 as step from period p where p.state = 'running'
    union all
    select p.queue, p.ends, -1 from period p where p.state = 'running'
    union all
    select b.queue, b.hour, 0 from busy b
),
level as (
    select m.queue, m.at, sum(m.step) over (partition by m.queue order by m.at, m.step rows unbounded preceding) as n from moment m
),
peak as (
    select l.queue, date_bin('1 hour', l.at, timestamptz 'epoch') as hour, max(l.n) as n from level l group by 1, 2
),
place as (
    select m.queue, m.hour from met m union select e.queue, e.hour from ended e union select b.queue, b.hour from busy b
)
select (p.hour at time zone 'UTC')::date as day, p.hour, p.queue, coalesce(m.came, 0) as came, coalesce(m.started, 0) as started,
    coalesce(m.waiting_peak, 0) as waiting_peak, coalesce(m.waiting_last, 0) as waiting_last, coalesce(k.n, 0) as running_peak, m.oldest_s,
    coalesce(e.n, 0) as starts_ended, coalesce(e.completed, 0) as completed, coalesce(e.failing, 0) as failing,
    coalesce(e.dead, 0) as dead, coalesce(e.late, 0) as late, coalesce(e.workers, 0) as workers,
    coalesce(b.waited, 0)::double precision / 3600 as mean_waiting, coalesce(b.ran, 0)::double precision / 3600 as mean_running,
    (e.waited / nullif(e.n, 0))::double precision as mean_wait_s, (e.ran / nullif(e.n, 0))::double precision as mean_run_s,
    (coalesce(e.waited, case when e.queue is not null then 0 end) / nullif(b.waited, 0))::double precision as little_waiting,
    (coalesce(e.ran, case when e.queue is not null then 0 end) / nullif(b.ran, 0))::double precision as little_running
from place p
left join met m using (queue, hour)
left join ended e using (queue, hour)
left join busy b using (queue, hour)
left join peak k using (queue, hour)
