-- $1: message ids in the order in which they start, $2: fence.
select m.id, $2, c.queue, c.name, m.kind, m.priority, m.attempt + 1, m.max_attempts,
    m.due / 1e6, m.published_at / 1e6, m.first_published_at / 1e6, m.expires_at / 1e6,
    m.key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent
from json_each($1) j cross join "penstock_message" m cross join "penstock_channel" c
where m.id = j.value and c.id = m.channel_id
