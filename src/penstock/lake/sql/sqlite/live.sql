select m.id as message_id, m.queue, m.channel, m.kind, m.state, m.attempt, max(m.due, m.published_at) as due, m.claimed_at,
    {seen_at} as seen_at
from {message_v1} m
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, {seen_at} from {dead} d
