-- Four numbers a queue and whole hour.
with range as (
    select h.queue, generate_series(min(h.hour), date_bin('1 hour', %(now)s, timestamptz 'epoch') - interval '1 hour', interval '1 hour') as hour
    from hours h group by h.queue
)
select r.queue, r.hour, m.metric, m.value
from range r
left join hours h using (queue, hour)
left join percentiles p on p.grain = 'hour' and p.measure = 'wait' and p.queue = r.queue and p.hour = r.hour
cross join lateral (values
    ('came', coalesce(h.came, 0)::double precision), ('completed', coalesce(h.completed, 0)::double precision),
    ('failing share', case when h.starts_ended >= 20 then h.failing::double precision / h.starts_ended end),
    ('p95 wait', case when h.starts_ended >= 20 then p.p95 end)) m (metric, value)
