select m.id as message_id, m.queue, m.channel, m.kind, m.state, m.attempt,
    case when m.due between '0001-01-01 00:00Z' and '9999-12-31 23:59:59.999999Z' then greatest(m.due, m.published_at) end as due, m.claimed_at, clock.now as seen_at
from {schema}.message_v1 m, (select {seen_at}::timestamptz as now) clock
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, clock.now
from {schema}.dead_letter_v1 d, (select {seen_at}::timestamptz as now) clock
