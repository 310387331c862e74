with came as (
    select p.queue, p.channel, date_bin('5 minutes', p.begins, timestamptz 'epoch') as slot, count(*) as n
    from period p where p.state = 'waiting' group by 1, 2, 3
),
started as (
    select p.queue, p.channel, date_bin('5 minutes', p.ends, timestamptz 'epoch') as slot, count(*) as n
    from period p where p.state = 'waiting' and p.started group by 1, 2, 3
),
place as (
    select c.queue, c.channel, c.slot from came c
    union select s.queue, s.channel, s.slot from started s
    union select b.queue, b.channel, b.border - interval '5 minutes' from border b
    union select b.queue, b.channel, b.border from border b where b.state = 'waiting'
)
select (p.slot at time zone 'UTC')::date as day, p.slot, p.queue, p.channel, coalesce(c.n, 0) as came, coalesce(s.n, 0) as started,
    coalesce(w.n, 0) as waiting, coalesce(e.n, 0) as waiting_before, coalesce(r.n, 0) as running,
    extract(epoch from w.border - w.oldest)::double precision as oldest_s
from place p
left join came c using (queue, channel, slot)
left join started s using (queue, channel, slot)
left join border w on w.queue = p.queue and w.channel = p.channel and w.state = 'waiting' and w.border = p.slot + interval '5 minutes'
left join border e on e.queue = p.queue and e.channel = p.channel and e.state = 'waiting' and e.border = p.slot
left join border r on r.queue = p.queue and r.channel = p.channel and r.state = 'running' and r.border = p.slot + interval '5 minutes'
