-- Is the objective met [queue, window]: the share of late starts, and the burn rate of the error budget.
select f.queue, w.hours as window_hours, sum(f.starts) as starts, sum(f.late) as late,
    try_divide(sum(f.late), sum(f.starts)) as late_share,
    try_divide(sum(f.late), sum(f.starts)) / (1 - :target) as burn
from flow f
cross join (select explode(array(1, 6, 24, 72)) as hours) w
where f.queue <> '' and f.slot >= :now - make_dt_interval(0, w.hours)
group by f.queue, w.hours
