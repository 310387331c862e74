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
