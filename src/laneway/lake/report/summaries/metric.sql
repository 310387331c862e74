-- View: four metrics for each queue and hour; an hour without messages counts as zero. Shares and percentiles of
-- fewer than 20 starts are null, because they would only be noise.
with range as (
    select h.queue, explode(sequence(min(h.hour), date_trunc('HOUR', :now) - interval 1 hour, interval 1 hour)) as hour
    from hours h
    where h.hour < date_trunc('HOUR', :now)
    group by h.queue
),
wide as (
    select r.queue, r.hour, coalesce(h.came, 0) as came, coalesce(h.completed, 0) as completed,
        case when h.starts_ended >= 20 then h.failing / h.starts_ended end as failing,
        case when h.starts_ended >= 20 then p.p95 end as wait
    from range r
    left join hours h on h.queue = r.queue and h.hour = r.hour
    left join percentiles p on p.grain = 'hour' and p.measure = 'wait' and p.queue = r.queue and p.hour = r.hour
)
select w.queue, w.hour, m.metric, m.value
from wide w
lateral view stack(4, 'came', double(w.came), 'completed', double(w.completed), 'failing share', w.failing, 'p95 wait', w.wait)
    m as metric, value
