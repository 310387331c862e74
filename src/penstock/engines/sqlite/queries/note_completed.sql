-- $1: fence, $2: message ids, of which those count that are held under it; $3: now.
insert into "penstock_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, k.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due, k.claimed_at, $3,
    length(m.payload), 1, 0, m.priority, c.queue, c.name, m.kind, k.worker, 'completed'
from "penstock_state" s cross join "penstock_claim" k cross join "penstock_lease" l
cross join "penstock_message" m cross join "penstock_channel" c
where s.history = 'all' and k.fence = $1 and l.fence = $1
    and l.message_id in (select value from json_each($2)) and m.id = l.message_id
    and c.id = m.channel_id
