with died as (
    select distinct on (l.message_id, l.queue, l.kind) l.message_id, l.queue, l.kind, l.type, l.frame, l.text, l.at
    from letters l where l.event = 'died' order by l.message_id, l.queue, l.kind, l.at desc
),
counted as (
    select d.*, n.died > n.redriven + n.discarded as lies, n.redriven > 0 as redriven, n.discarded > 0 as discarded,
        n.recovered > 0 as recovered, n.again > 0 as died_again
    from died d
    cross join lateral (
        select count(*) filter (where l.event = 'died') as died, count(*) filter (where l.event = 'redriven') as redriven,
            count(*) filter (where l.event = 'discarded') as discarded, count(*) filter (where l.event = 'recovered') as recovered,
            count(*) filter (where l.event = 'died' and l.again) as again
        from letters l where (l.message_id, l.queue, l.kind) = (d.message_id, d.queue, d.kind)) n
),
grouped as (
    select c.queue, c.kind, c.type, c.frame, c.text, count(*) filter (where c.lies) as letters, min(c.at) filter (where c.lies) as oldest,
        count(*) filter (where c.redriven) as redriven, count(*) filter (where c.recovered) as recovered,
        count(*) filter (where c.died_again) as died_again, count(*) filter (where c.discarded) as discarded
    from counted c group by 1, 2, 3, 4, 5
),
known as (
    select g.*, s.last_at,
        (select count(*) from fact f where f.outcome = 'completed' and f.queue = g.queue and f.kind = g.kind and f.slot > s.last_at) as completed_since
    from grouped g join signatures s using (queue, kind, type, frame, text)
)
select k.*,
    case when k.letters = 0 then 'nothing left'
        when k.died_again > 0 and 2 * k.died_again >= k.redriven then 'discard'
        when k.type = 'LeaseExpired' or k.last_at > %(now)s - interval '6 hours' or k.completed_since = 0 then 'fix first'
        -- Mended by itself: what was away came back, or earlier redrives recovered.
        when k.recovered = 0 and k.type !~* '(timeout|timedout|connection|unavailable|network|temporar|throttl|toomany|ratelimit|deadlock|serialization|operationalerror|brokenpipe)'
            then 'fix first'
        else 'redrive' end as advice
from known k
