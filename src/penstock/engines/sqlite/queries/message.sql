-- $1: id, $2: now. One statement, so that a message which dies meanwhile is seen once.
select m.id, c.queue, c.name, m.kind, m.key,
    case when l.fence is not null then 'leased' when m.due > $2 then 'scheduled' else 'waiting' end,
    m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    m.attempt + (l.fence is not null), m.max_attempts, m.content_type, m.headers, length(m.payload),
    l.fence, k.worker, k.claimed_at, l.until, null, null, null, null
from "penstock_message" m
join "penstock_channel" c on c.id = m.channel_id
left join "penstock_lease" l on l.message_id = m.id
left join "penstock_claim" k on k.fence = l.fence
where m.id = $1
union all
select id, queue, channel, kind, key, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, length(payload), null, null, null, null, died_at,
    reason, error_type, error
from "penstock_dead" where id = $1
