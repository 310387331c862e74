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
