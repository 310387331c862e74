select f.queue, f.kind, f.type, f.frame, f.text, count(*) as n, count(*) filter (where f.dead) as dead,
    (select max(d.channels) from failures d
        where (d.queue, d.kind, d.type, d.frame, d.text) = (f.queue, f.kind, f.type, f.frame, f.text)) as channels,
    min(f.ended_at) as first_at, max(f.ended_at) as last_at,
    count(*) filter (where f.day = (%(now)s at time zone 'UTC')::date) as today,
    count(*) filter (where f.day = (%(now)s at time zone 'UTC')::date - 1) as yesterday,
    min(f.ended_at) >= %(now)s - interval '24 hours'
        and (select min(h.hour) from hours h) < %(now)s - interval '24 hours' as is_new,
    (select d.example from failures d
        where (d.queue, d.kind, d.type, d.frame, d.text) = (f.queue, f.kind, f.type, f.frame, f.text)
        order by d.last_at desc limit 1) as example
from failed f
group by f.queue, f.kind, f.type, f.frame, f.text
