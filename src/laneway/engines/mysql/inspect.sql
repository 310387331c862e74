-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from `laneway_history` where message_id = $1 order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from `laneway_setting`

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null leaves a setting as it is.
update `laneway_setting` set history = coalesce($1, history), history_days = coalesce($2, history_days),
    backoff_initial = coalesce($3, backoff_initial), backoff_max = coalesce($4, backoff_max),
    audit_days = coalesce($5, audit_days)

-- name: forget_kind_counts
-- The history is not fully kept, or was not until now.
update `laneway_fold` set known = false

-- name: message
-- $1: id, $2: now. One statement, so that a message that dies meanwhile is seen once.
select m.id, m.queue, m.channel, m.kind, substr(m.`key`, 17) as `key`,
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
select id, queue, channel, kind, substr(`key`, 17) as `key`, 'dead', priority, null, published_at, first_published_at, null,
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
-- $1: names of the message and history tables. Reads their id counters, no rows. They began from the number of this
-- life of the server.
select table_name, greatest(0, auto_increment - 1 - coalesce((
    select l.number from `laneway_server_life` l order by l.id desc limit 1), 0)) from information_schema.tables
where table_schema = database() and table_name in ($1...)

-- name: clock
-- $1: now, null for the database's clock.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))

-- name: messages_end
-- $1: id of the last one seen, $2: limit. The last of the next ones, and how many they are.
select max(id), count(*) from (
    select id from `laneway_message` force index (primary) where id > $1 order by id limit $2) m

-- name: messages
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: state, $7: now,
-- $8: id up to which. Finds them first: only those of the page are read with their payload, for its size.
select m.id, m.queue, m.channel, m.kind, substr(m.`key`, 17) as `key`, x.state, m.priority, m.due, m.published_at, m.first_published_at,
    m.expires_at, case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts, m.content_type,
    m.headers, octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from (
    select * from (
        select m.id,
            case when l.fence is not null then 'leased'
                when m.due > coalesce($7, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
                then 'scheduled' else 'waiting' end as state
        from `laneway_message` m force index (primary) left join `laneway_lease` l on l.message_id = m.id
        where m.id > $4 and m.id <= $8 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
            and ($3 is null or m.kind = $3)
    ) m where $6 is null or state = $6
    order by id limit $5
) x straight_join `laneway_message` m force index (primary) on m.id = x.id
left join `laneway_lease` l on l.message_id = m.id
order by m.id

-- name: messages_leased_end
-- $1: id of the last one seen, $2: limit. As messages_end, of those that are leased.
select max(message_id), count(*) from (
    select message_id from `laneway_lease` force index (primary) where message_id > $1 order by message_id limit $2) l

-- name: messages_leased
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: id up to which.
select m.id, m.queue, m.channel, m.kind, substr(m.`key`, 17) as `key`, 'leased', m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1, m.max_attempts, m.content_type, m.headers,
    octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from `laneway_lease` l force index (primary) straight_join `laneway_message` m on m.id = l.message_id
where l.message_id > $4 and l.message_id <= $6 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
    and ($3 is null or m.kind = $3)
order by l.message_id limit $5

-- name: messages_dead_end
-- $1: id of the last one seen, $2: limit. As messages_end, of dead letters.
select max(id), count(*) from (
    select id from `laneway_dead` force index (primary) where id > $1 order by id limit $2) d

-- name: messages_dead
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: id up to which.
select d.id, d.queue, d.channel, d.kind, substr(d.`key`, 17) as `key`, 'dead', d.priority, null, d.published_at, d.first_published_at, null,
    d.attempt, d.max_attempts, d.content_type, d.headers, octet_length(d.payload), null, null, null, null,
    d.died_at, d.reason, d.error_type, d.error
from (
    select id from `laneway_dead` force index (primary)
    where id > $4 and id <= $6 and ($1 is null or queue = $1) and ($2 is null or channel = $2)
        and ($3 is null or kind = $3)
    order by id limit $5
) x straight_join `laneway_dead` d force index (primary) on d.id = x.id
order by d.id

-- name: size_of_channel
-- $1: channel, $2: limit. How many messages it has, up to the limit.
select count(*) from (
    select 1 from `laneway_message` force index (message_order) where channel_id = $1 limit $2) m

-- name: messages_of_channel
-- $1: channel, $2: kind, null for all; $3: id of the last one seen, $4: limit, $5: state, $6: now. As messages, for
-- a channel that has few.
select m.id, m.queue, m.channel, m.kind, substr(m.`key`, 17) as `key`, x.state, m.priority, m.due, m.published_at, m.first_published_at,
    m.expires_at, case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts, m.content_type,
    m.headers, octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from (
    select * from (
        select m.id,
            case when l.fence is not null then 'leased'
                when m.due > coalesce($6, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
                then 'scheduled' else 'waiting' end as state
        from `laneway_message` m force index (message_order) left join `laneway_lease` l on l.message_id = m.id
        where m.channel_id = $1 and m.id > $3 and ($2 is null or m.kind = $2)
    ) m where $5 is null or state = $5
    order by id limit $4
) x straight_join `laneway_message` m force index (primary) on m.id = x.id
left join `laneway_lease` l on l.message_id = m.id
order by m.id
