-- name: lock_taken_keys
-- $1: key ids in order. Who has them, behind whom, and how this transaction reads.
select t.id, t.message_id, t.expires_at, t.behind, t.behind_due,
    /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */
from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update

-- name: key_messages
-- $1: message ids. Only reads: what ends at this moment still has its lease, and its end waits for the key.
select m.id, m.channel_id, m.kind, m.priority, m.due, m.published_at,
    exists (select 1 from `laneway_lease` l where l.message_id = m.id)
from `laneway_message` m where m.id in ($1...)

-- name: lock_dead_owners
-- $1: ids in order. Skips those that another session is redriving or discarding.
select d.id, d.queue, d.channel, d.kind from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
for update skip locked

-- name: replace_message
-- $1: message, $2: due, $3: expires_at, $4: key_window, $5: max_attempts, $6: priority, $7: content type, $8: headers,
-- $9: payload. What was saved and counted belonged to what it was before.
update `laneway_message` set due = $2, expires_at = $3, key_window = $4, max_attempts = $5, priority = $6,
    content_type = $7, headers = $8, payload = $9, spent = 0, state = null, state_type = null
where id = $1

-- name: set_behind_due
-- $1: key id, locked by us, $2: when its message is due once it waits behind no other.
update `laneway_dedupe` set behind_due = $2 where id = $1

-- name: park
-- $1: key id, locked by us, $2: the message that has the key now, behind the one that has it, $3: when it is due then.
update `laneway_dedupe` set behind = message_id, message_id = $2, behind_due = $3 where id = $1

-- name: publish_state
-- $1: now. Columns: the time, the largest statement that the server accepts, the step of its ids,
-- whether any channel refuses messages, whether anybody listens to events, how many queues are claimed by kind,
-- the number of this life of the server (as the statement server_life).
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    @@max_allowed_packet, @@auto_increment_increment,
    exists (select 1 from `laneway_channel` where gated = 1),
    exists (select 1 from `laneway_listener` where until > coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))),
    (select by_kind from `laneway_turnstile` force index (primary) where name = 'pause'),
    (
        select if(concat(connection_id(), ' ', l.server) = @laneway_server, l.number, 0)
        from `laneway_server_life` l order by l.id desc limit 1)

-- name: refusing_channels
-- $1: channel ids. Those that refuse messages: all (closing), or more than a backlog.
select id, closing, backlog from `laneway_channel` where gated = 1 and id in ($1...)

-- name: add_wakes
-- $1: rows.
insert into `laneway_wake` (at, channel_id, due, message_id, n, freed, priority, ahead, queue, channel)
values $1...

-- name: add_expiries
-- $1: rows.
insert into `laneway_expiry` (message_id, expires_at) values $1...

-- name: subscribe
-- $1: topic, queue, channel and kind, as one row.
insert into `laneway_subscription` (topic, queue, channel, kind) values $1...
on duplicate key update channel = values(channel), kind = values(kind)

-- name: lock_subscription
-- $1: topic, $2: queue.
select 1 from `laneway_subscription` where topic = $1 and queue = $2 for update

-- name: unsubscribe
-- $1: topic, $2: queue.
delete from `laneway_subscription` where topic = $1 and queue = $2

-- name: subscriptions
-- $1: topic, null for all.
select topic, queue, channel, kind from `laneway_subscription`
where $1 is null or topic = $1 order by topic, queue

-- name: live_keys
-- $1: key ids. Only reads: an open transaction that met a live key blocks nobody who completes its message.
select id, message_id, expires_at,
    /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */
from `laneway_dedupe` where id in ($1...)

-- name: reserve_keys
-- $1: rows, in the order of their ids. Waits until another publish of the same key has ended. On a duplicate
-- it takes the row's exclusive lock at once, so two sessions that waited for a third cannot deadlock.
insert into `laneway_dedupe` (id, queue, `key`, message_id) values $1...
on duplicate key update `laneway_dedupe`.message_id = `laneway_dedupe`.message_id

-- name: reserved_keys
-- $1: key ids, already locked by us.
select t.id, t.message_id, t.expires_at
from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update

-- name: assign_keys
-- $1: rows, already locked by us: this insert only sets their message ids.
insert into `laneway_dedupe` (id, queue, `key`, message_id) values $1...
on duplicate key update message_id = values(message_id), expires_at = null

-- name: delete_keys
-- $1: key ids in order.
delete t from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
