-- $1: queue, $2: channel, $3: kind; null matches all. $4: id of the last one seen, $5: limit.
-- Starts from the leases, which are few.
select m.id, c.queue, c.name, m.kind, m.key, 'leased', m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1, m.max_attempts, m.content_type, m.headers,
    length(m.payload), l.fence, k.worker, k.claimed_at, l.until
from "penstock_lease" l cross join "penstock_message" m cross join "penstock_channel" c
cross join "penstock_claim" k
where m.id = l.message_id and c.id = m.channel_id and k.fence = l.fence and m.id > $4
    and ($1 is null or c.queue = $1) and ($2 is null or c.name = $2) and ($3 is null or m.kind = $3)
order by m.id limit $5
