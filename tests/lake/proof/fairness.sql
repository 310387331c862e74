with share as (
    select f.day, f.hour, f.queue, f.channel, count(*) as n from fact f where f.begun group by 1, 2, 3, 4
),
whole as (
    select s.day, s.hour, s.queue, count(*) as channels, sum(s.n) as starts, max(s.n)::double precision / sum(s.n)::double precision as top_share,
        (array_agg(s.channel order by s.n desc, s.channel collate "C" desc))[1] as top_channel
    from share s group by 1, 2, 3
),
contest as (
    select l.queue, l.slot, count(*) as channels, sum(l.started) as starts,
        (sum(l.started) ^ 2 / (count(*) * sum(l.started ^ 2)))::double precision as jain
    from lanes l where l.waiting_before > 0 and l.waiting > 0
    group by l.queue, l.slot having count(*) >= 2 and sum(l.started) > 0
),
judged as (
    select c.queue, date_bin('1 hour', c.slot, timestamptz 'epoch') as hour, count(*) as slots, max(c.channels) as contenders,
        sum(c.jain * c.starts) / sum(c.starts) as jain, min(c.jain) as worst
    from contest c group by 1, 2
),
quiet as (
    select f.queue, f.hour, array_agg(f.waited / 1000000.0 order by f.waited) as waits
    from fact f
    join share s using (day, hour, queue, channel)
    join whole w using (day, hour, queue)
    where f.begun and s.n < w.starts / w.channels
    group by f.queue, f.hour
)
select w.day, w.hour, w.queue, w.channels, w.starts, w.top_channel, w.top_share, coalesce(j.slots, 0) as contested_slots,
    coalesce(j.contenders, 0) as contenders, j.jain::double precision as jain, j.worst as worst_jain,
    q.waits[ceil(0.95 * cardinality(q.waits))]::double precision as quiet_p95
from whole w
left join judged j using (queue, hour)
left join quiet q using (queue, hour)
