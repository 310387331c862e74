-- name: add_lease_placeholders
-- $1: message ids in order, $2: a time that never comes. In a transaction that locks gaps, leases that do not
-- exist get a row with fence 0, which no claim uses: a lock on the gap would stop all claims from adding leases.
insert into `laneway_lease` (message_id, fence, until, claimed_at, channel_id, counted, worker)
select x.id, 0, $2, 0, '', false, '' from $1:ids x
where /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */ in ('REPEATABLE-READ', 'SERIALIZABLE')
on duplicate key update fence = `laneway_lease`.fence

-- name: delete_lease_placeholders
-- $1: message ids in order, locked by us. Undoes add_lease_placeholders.
delete t from $1:ids x straight_join `laneway_lease` t force index (primary) on t.message_id = x.id and t.fence = 0

-- name: lock_leases_to_extend
-- $1: (message id, fence) in order, $2: now.
select l.message_id, l.fence, l.until, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
for update

-- name: extend
-- $1: message ids, locked by us, $2: until. Never shortens a lease.
update $1:ids x straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
set l.until = greatest(l.until, $2)

-- name: lock_free_leases
-- $1: (message id, fence) in order, $2: now. Locks the leases that nobody else has locked.
select l.message_id, l.fence, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
for update skip locked

-- name: existing_leases
-- $1: (message id, fence) in order. The leases that exist, whoever has locked them.
select l.message_id, l.fence
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence

-- name: note_progress
-- $1: rows of message id, fence, now, share, note, whose leases are locked by us.
insert into `laneway_progress` (message_id, fence, at, share, note) values $1...
on duplicate key update fence = values(fence), at = values(at), share = values(share), note = values(note)

-- name: progress
-- $1: ids.
select p.message_id, p.share, p.note, p.at, p.fence
from $1:ids x straight_join `laneway_progress` p on p.message_id = x.id
straight_join `laneway_lease` l on l.message_id = p.message_id and l.fence = p.fence

-- name: old_progress
-- $1: now, $2: limit. What holders said whose leases are gone.
select p.message_id from `laneway_progress` p force index (progress_at)
left join `laneway_lease` l on l.message_id = p.message_id and l.fence = p.fence
where p.at < $1 - 60000000 and l.message_id is null limit $2

-- name: delete_progress
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_progress` t force index (primary) on t.message_id = x.id
