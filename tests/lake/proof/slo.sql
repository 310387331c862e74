select f.queue, w.hours as window_hours, count(*) filter (where f.begun) as starts,
    count(*) filter (where f.begun and f.claimed_at - f.ready > %(objective)s) as late,
    count(*) filter (where f.begun and f.claimed_at - f.ready > %(objective)s)::double precision / nullif(count(*) filter (where f.begun), 0) as late_share,
    count(*) filter (where f.begun and f.claimed_at - f.ready > %(objective)s)::double precision / nullif(count(*) filter (where f.begun), 0)
        / (1 - %(target)s) as burn
from fact f
cross join (values (1), (6), (24), (72)) w (hours)
where f.queue <> '' and f.slot >= %(now)s - make_interval(hours => w.hours)
group by f.queue, w.hours
