-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit.
-- Starts from the leases, which are few.
select m.id, m.queue, m.channel, m.kind, m.`key`, 'leased', m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1, m.max_attempts, m.content_type, m.headers,
    octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from `penstock_lease` l straight_join `penstock_message` m on m.id = l.message_id
where l.message_id > $4 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
    and ($3 is null or m.kind = $3)
order by l.message_id limit $5
