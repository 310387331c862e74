with recursive ahead as (
    select q.queue, n, date_bin('1 hour', %(now)s, timestamptz 'epoch') + make_interval(hours => n) as hour
    from (select distinct h.queue from hours h) q, generate_series(0, 23) n
),
usual as (
    select a.queue, a.n, a.hour, coalesce(
        (select percentile_cont(0.5) within group (order by f.value) from figure f
            where f.queue = a.queue and f.metric = 'came' and mod(extract(epoch from a.hour - f.hour), 604800) = 0),
        (select percentile_cont(0.5) within group (order by f.value) from figure f
            where f.queue = a.queue and f.metric = 'came' and mod(extract(epoch from a.hour - f.hour), 86400) = 0), 0) as expected,
        coalesce((select max(h.started) from hours h where h.queue = a.queue and h.hour >= %(now)s - interval '7 days'), 0) as capacity
    from ahead a
),
-- Hour after hour: what is left is what was left, and came, and was not started.
step as (
    select u.queue, u.n, u.hour, u.expected, u.capacity,
        greatest(0, (select count(*) from live l where l.queue = u.queue and l.state = 'waiting') + u.expected - u.capacity) as backlog
    from usual u where u.n = 0
    union all
    select u.queue, u.n, u.hour, u.expected, u.capacity, greatest(0, s.backlog + u.expected - u.capacity)
    from step s join usual u on u.queue = s.queue and u.n = s.n + 1
)
select s.queue, s.hour, s.expected, s.capacity, s.backlog from step s
