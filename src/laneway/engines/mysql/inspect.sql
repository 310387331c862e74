-- name: message
-- $1: id, $2: now. One statement, so that a message that dies meanwhile is seen once.
select m.id, m.queue, m.channel, m.kind, m.`key`,
    case when l.fence is not null then 'leased'
        when m.due > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        then 'scheduled' else 'waiting' end as state,
    m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    case when l.fence is null then m.attempt else m.attempt + 1 end as attempt, m.max_attempts,
    m.content_type, m.headers, octet_length(m.payload) as payload_size, l.fence, l.worker,
    l.claimed_at, l.until, null as died_at, null as reason, null as error_type, null as error,
    null as traceback
from `laneway_message` m left join `laneway_lease` l on l.message_id = m.id where m.id = $1
union all
select id, queue, channel, kind, `key`, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, octet_length(payload), null, null, null, null,
    died_at, reason, error_type, error, traceback
from `laneway_dead` where id = $1

-- name: payload
-- $1: id.
select payload from `laneway_message` where id = $1
union all
select payload from `laneway_dead` where id = $1

-- name: saved_state
-- $1: id.
select state from `laneway_message` where id = $1
union all
select state from `laneway_dead` where id = $1

-- name: history_since
-- $1 and $2: stamp and id of the last one seen, $3: limit. The first column is part of the next position.
select settled, id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from `laneway_history` force index (history_settled)
where (settled = $1 and id > $2) or settled > $1
order by settled, id limit $3

-- name: totals
-- $1: names of the message and history tables. Reads their id counters, no rows.
select table_name, auto_increment - 1 from information_schema.tables
where table_schema = database() and table_name in ($1...)

-- name: clock
-- $1: now, null for the database's clock.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
