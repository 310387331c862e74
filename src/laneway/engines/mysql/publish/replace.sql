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
