-- Which dead letters to redrive, to fix first, or to discard [queue, kind, signature of the last error], and what
-- happened after earlier redrives. Code that has failed on a message fails on it again: only errors of something else
-- that was away (a timeout, a connection), and those whose redrives have recovered, are worth a redrive as they are.
with message as (
    select l.message_id, l.queue, l.kind,
        count_if(l.event = 'died') as died, count_if(l.event = 'redriven') as redriven,
        count_if(l.event = 'discarded') as discarded, count_if(l.event = 'recovered') as recovered,
        count_if(l.event = 'died' and l.again) as died_again,
        max_by(struct(l.type, l.frame, l.text), l.at) filter (where l.event = 'died') as last_death,
        max(l.at) filter (where l.event = 'died') as died_at
    from letters l
    group by l.message_id, l.queue, l.kind
),
grouped as (
    select m.queue, m.kind, m.last_death.type, m.last_death.frame, m.last_death.text,
        count_if(m.died > m.redriven + m.discarded) as letters,
        min(m.died_at) filter (where m.died > m.redriven + m.discarded) as oldest,
        count_if(m.redriven > 0) as redriven, count_if(m.recovered > 0) as recovered,
        count_if(m.died_again > 0) as died_again, count_if(m.discarded > 0) as discarded
    from message m
    where m.last_death is not null
    group by m.queue, m.kind, m.last_death.type, m.last_death.frame, m.last_death.text
),
known as (
    select g.*, s.last_at, coalesce(c.completed, 0) as completed_since
    from grouped g
    join signatures s on s.queue = g.queue and s.kind = g.kind and s.type = g.type and s.frame = g.frame and s.text = g.text
    left join lateral (
        select sum(f.completed) as completed from flow f
        where f.queue = g.queue and f.kind = g.kind and f.slot > s.last_at) c
)
select k.*,
    case
        when k.letters = 0 then 'nothing left'
        when k.died_again > 0 and k.died_again * 2 >= k.redriven then 'discard'
        when k.type = 'LeaseExpired' then 'fix first'
        when k.last_at > :now - interval 6 hours then 'fix first'
        when k.completed_since = 0 then 'fix first'
        when k.recovered = 0 and not lower(k.type) rlike 'timeout|timedout|connection|unavailable|network|temporar|throttl|toomany|ratelimit|deadlock|serialization|operationalerror|brokenpipe'
            then 'fix first'
        else 'redrive'
    end as advice
from known k
