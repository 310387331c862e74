-- The sketches are compared through the percentiles that can be read from them.
select f.day, f.slot, f.queue, f.channel, f.kind, m.measure, count(*) as n, sum(m.us) as total_us, max(m.us) as max_us,
    (array_agg(m.us order by m.us))[ceil(0.5 * count(*))] as p50, (array_agg(m.us order by m.us))[ceil(0.95 * count(*))] as p95,
    (array_agg(m.us order by m.us))[ceil(0.99 * count(*))] as p99
from fact f
cross join lateral (values ('wait', f.waited), ('run', f.ran)) m (measure, us)
where f.begun
group by f.day, f.slot, f.queue, f.channel, f.kind, m.measure
