-- $1: rows of message id and fence, $2: now.
insert into "penstock_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, k.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due, k.claimed_at, $2,
    length(m.payload), 1, 0, m.priority, c.queue, c.name, m.kind, k.worker, 'completed'
from "penstock_state" s cross join json_each($1) j cross join "penstock_message" m
cross join "penstock_channel" c cross join "penstock_claim" k
where s.history = 'all' and m.id = json_extract(j.value, '$[0]') and c.id = m.channel_id
    and k.fence = json_extract(j.value, '$[1]')
