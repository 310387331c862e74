-- name: names_of_messages
-- $1: message ids, locked by us.
select m.id, m.queue, m.channel, m.kind
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
lock in share mode

-- name: keep_results
-- $1: rows.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome, content_type,
    payload)
values $1...

-- name: keep_ended
-- $1: message ids, locked by us, $2: outcome, $3: now. How messages ended that no handler ended, if their results
-- were to be kept. Anybody can write any headers: what is no number is nothing, and ten years are the longest.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select m.id, $3, $3 + cast(1000000 * greatest(least(json_extract(convert(m.headers using utf8mb4), '$."laneway-keep-result"') + 0e0, 315360000), 0) as signed), m.queue, m.channel, m.kind, $2
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
where m.headers is not null and json_type(json_extract(convert(m.headers using utf8mb4), '$."laneway-keep-result"')) in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')

-- name: results
-- $1: ids, $2: now. Of messages that completed, those that are still kept.
select r.message_id, r.content_type, r.payload
from $1:ids x straight_join `laneway_result` r on r.message_id = x.id
where r.payload is not null
    and r.expires_at > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))

-- name: expired_results
-- $1: now, $2: limit.
select message_id from `laneway_result` force index (result_expiry)
where expires_at <= $1 order by expires_at limit $2

-- name: delete_results
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_result` t force index (primary) on t.message_id = x.id

-- name: once
-- $1: id, queue, key, keep_until and mark, as one row. Waits for another transaction that asks for the
-- same key.
insert into `laneway_done` (id, queue, `key`, keep_until, mark) values $1...
on duplicate key update mark = `laneway_done`.mark

-- name: read_once
-- $1: id, locked by us, $2: now. The clock is read after the wait.
select mark, keep_until, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from `laneway_done` where id = $1 for update

-- name: renew_once
-- $1: keep_until, $2: id, locked by us.
update `laneway_done` force index (primary) set keep_until = $1 where id = $2

-- name: expired_once
-- $1: now, $2: limit.
select id from `laneway_done` force index (done_expiry) where keep_until <= $1 order by keep_until limit $2

-- name: lock_expired_once
-- $1: ids in order, $2: now.
select t.id from $1:keys x
straight_join `laneway_done` t force index (primary) on t.id = unhex(x.id) and t.keep_until <= $2
for update skip locked

-- name: delete_expired_once
-- $1: ids.
delete t from $1:keys x straight_join `laneway_done` t force index (primary) on t.id = unhex(x.id)

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
-- $1: now, $2: limit. What holders said whose leases are gone. It reads past the others: no more than workers hold.
select p.message_id from `laneway_progress` p force index (progress_at)
left join `laneway_lease` l on l.message_id = p.message_id and l.fence = p.fence
where p.at < $1 - 60000000 and l.message_id is null limit $2

-- name: delete_progress
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_progress` t force index (primary) on t.message_id = x.id
