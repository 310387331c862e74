-- name: lock_keys
-- $1: key ids in order. Who has them, and behind whom.
select t.id, t.message_id, t.behind, t.behind_due
from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update

-- name: lock_parked
-- $1: ids of messages that wait behind others; we have locked their keys. With the wake that is theirs alone: no
-- other is at that time.
select m.id, m.channel_id, m.queue, m.channel, m.priority, m.due,
    (select min(w.id) from `laneway_wake` w where w.queue = m.queue and w.at = m.due and w.message_id = m.id and w.n = 1)
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
for update

-- name: move_due
-- $1: message, $2: due.
update `laneway_message` set due = $2 where id = $1

-- name: delete_own_wakes
-- $1: ids of wakes.
delete t from $1:ids x straight_join `laneway_wake` t force index (primary) on t.id = x.id

-- name: nothing_in_front
-- $1: key ids, locked by us. The running messages in front have ended.
update $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
set t.behind = null, t.behind_due = null

-- name: give_key_to_running
-- $1: key id, locked by us. The message that waited behind a running one has ended. (Of one table: only then the
-- assignments have an order.)
update `laneway_dedupe` set message_id = behind, behind = null, behind_due = null where id = $1
