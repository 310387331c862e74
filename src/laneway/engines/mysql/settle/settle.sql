-- name: message_channels
-- $1: ids. The channels of the messages.
select id, channel_id, queue, channel from `laneway_message` where id in ($1...)

-- name: waiting_messages
-- $1: ids, $2: now. Those that are not leased. We have locked their channels. The last columns: how many queues are
-- claimed by kind, and its flow. (The server would read all leases for a "not exists".)
select m.id, m.channel_id, m.queue, m.channel, m.kind, m.`key`, m.key_window, m.priority, m.attempt, m.due,
    m.published_at, m.first_published_at, octet_length(m.payload),
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s),
    (select t.by_kind from `laneway_turnstile` t force index (primary) where t.name = 'pause'), m.flow_id
from `laneway_message` m force index (primary)
where m.id in ($1...) and (select l.message_id from `laneway_lease` l where l.message_id = m.id) is null
order by m.id

-- name: message_states
-- $1: ids. Those that still exist, as messages or as dead letters.
select id, 'leased' from `laneway_message` where id in ($1...)
union all
select id, 'dead' from `laneway_dead` where id in ($1...)

-- name: delete_kind_messages
-- $1: ids of messages in channels that we have locked, which begin, end or change; their rows are unchanged yet.
delete k from $1:ids x
straight_join `laneway_message` m force index (primary) on m.id = x.id
straight_join `laneway_kind_message` k force index (primary) on k.channel_id = m.channel_id
    and k.lane = concat('=', m.kind) and k.priority = m.priority and k.due = m.due and k.message_id = m.id

-- name: lock_leases
-- $1: (message id, fence) in order, $2: now. Locks the leases that are still held with this fence. All columns
-- are one text, which is cheaper for drivers in Python: id, fence, whether it is counted or has a key, whether it
-- is a node of a flow, now, and which history is kept.
select concat_ws(',', l.message_id, l.fence, l.counted or m.`key` is not null, m.flow_id is not null, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s))
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
straight_join `laneway_message` m force index (primary) on m.id = l.message_id
for update

-- name: lock_leases_and_messages
-- $1: (message id, fence) in order, $2: now. As lock_leases, with the columns that the history and a requeue
-- need.
select l.message_id, l.fence, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), (select s.history from `laneway_setting` s),
    l.claimed_at, l.worker, m.kind, m.priority, m.due, m.published_at, m.first_published_at, m.attempt,
    m.spent, m.max_attempts, octet_length(m.payload), m.flow_id
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
straight_join `laneway_message` m force index (primary) on m.id = l.message_id
for update

-- name: add_completed_history
-- $1: message ids, locked by us, $2: now, $3: outcome.
insert into `laneway_history` (message_id, fence, attempt, first_published_at, published_at, due,
    claimed_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, l.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due,
    l.claimed_at, $2, octet_length(m.payload), true, false, m.priority, m.queue, m.channel, m.kind,
    l.worker, $3
from $1:ids x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: add_waited_history
-- $1: message ids, locked by us, each with the milliseconds that it waited inside a worker or null, $2: now,
-- $3: outcome. As add_completed_history.
insert into `laneway_history` (message_id, fence, attempt, first_published_at, published_at, due,
    claimed_at, started_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, l.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due,
    l.claimed_at, least(l.claimed_at + 1000 * x.fence, $2), $2, octet_length(m.payload), true, false, m.priority,
    m.queue, m.channel, m.kind, l.worker, $3
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: lease_slots_and_keys
-- $1: message ids, locked by us. The channel's slot and the key that each of them frees, and the message that has
-- the key, which this locks.
select l.message_id, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    t.message_id, t.behind, t.behind_due, l.claimed_at
from $1:ids x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
straight_join `laneway_message` m force index (primary) on m.id = x.id
left join `laneway_dedupe` t force index (primary)
    on t.id = unhex(substr(sha2(concat(octet_length(m.queue), ':', m.queue, m.`key`), 256), 1, 32))
for update

-- name: delete_leased_messages
-- $1: message ids, locked by us. Deletes the lease and the message together.
delete l, m from $1:ids x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: save_state
-- $1: ids, locked by us, $2: state, $3: its type.
update $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
set m.state = $2, m.state_type = $3

-- name: delete_leases
-- $1: message ids, locked by us.
delete t from $1:ids x straight_join `laneway_lease` t force index (primary) on t.message_id = x.id
