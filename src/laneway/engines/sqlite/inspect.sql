-- name: message
-- $1: id, $2: now. One statement, so that a message that dies meanwhile is found exactly once.
select m.id, c.queue, c.name, m.kind, m.key,
    case when l.fence is not null then 'leased' when m.due > $2 then 'scheduled' else 'waiting' end,
    m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    m.attempt + (l.fence is not null), m.max_attempts, m.content_type, m.headers, length(m.payload),
    l.fence, k.worker, k.claimed_at, l.until, null, null, null, null, null
from "laneway_message" m
join "laneway_channel" c on c.id = m.channel_id
left join "laneway_lease" l on l.message_id = m.id
left join "laneway_claim" k on k.fence = l.fence
where m.id = $1
union all
select id, queue, channel, kind, key, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, length(payload), null, null, null, null, died_at,
    reason, error_type, error, traceback
from "laneway_dead" where id = $1

-- name: payload
-- $1: id.
select payload from "laneway_message" where id = $1
union all
select payload from "laneway_dead" where id = $1

-- name: saved_state
-- $1: id.
select state from "laneway_message" where id = $1
union all
select state from "laneway_dead" where id = $1

-- name: history_since
-- $1: the last id seen, $2: limit.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway_history" where id > $1 order by id limit $2

-- name: totals
-- $1: the name of the history table. Reads counters only.
select message_id, coalesce((select seq from sqlite_sequence where name = $1), 0) from "laneway_state"
