-- Attempts that ended, or messages that ended without one.
-- $1: rows of message id, fence (or null), outcome, terminal, dead, reason, error type, error; $2: now.
insert into "penstock_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason, error_type,
    error)
select m.id, k.fence, m.attempt + (k.fence is not null), m.first_published_at, m.published_at, m.due,
    k.claimed_at, $2, length(m.payload), json_extract(j.value, '$[3]'), json_extract(j.value, '$[4]'),
    m.priority, c.queue, c.name, m.kind, k.worker, json_extract(j.value, '$[2]'),
    json_extract(j.value, '$[5]'), json_extract(j.value, '$[6]'), json_extract(j.value, '$[7]')
from "penstock_state" s cross join json_each($1) j cross join "penstock_message" m
cross join "penstock_channel" c left join "penstock_claim" k on k.fence = json_extract(j.value, '$[1]')
where (s.history = 'all'
        or s.history = 'failures' and json_extract(j.value, '$[2]') in ('retried', 'failed', 'expired'))
    and m.id = json_extract(j.value, '$[0]') and c.id = m.channel_id
order by j.key
