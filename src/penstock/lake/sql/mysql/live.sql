select m.id as message_id, m.queue, m.channel, m.kind,
    case when l.message_id is not null then 'leased' when m.due > {seen_at} then 'scheduled' else 'waiting' end as state,
    m.attempt, greatest(m.due, m.published_at) as due, l.claimed_at, {seen_at} as seen_at
from {message} m left join {lease} l on l.message_id = m.id
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, {seen_at} from {dead} d
