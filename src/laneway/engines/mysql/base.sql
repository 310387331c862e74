-- name: max_allowed_packet
-- The largest statement that the server accepts, in bytes.
select @@max_allowed_packet

-- name: lock_channels
-- $1: rows in the order of their ids. Adds missing channels and locks all of them, waiting for those that
-- others hold.
insert into `laneway_channel` (id, queue, name) values $1...
on duplicate key update queue = `laneway_channel`.queue

-- name: add_channels
-- $1: rows, in the order of their ids. Waits for a channel that another session is adding, a second at most
-- (on MySQL as long as the session waits for locks).
/*M!100300 set statement innodb_lock_wait_timeout = 1 for */
insert ignore into `laneway_channel` (id, queue, name) values $1...

-- name: add_free_channel
-- $1: a row. Does not wait for another session (on MySQL it does).
/*M!100300 set statement innodb_lock_wait_timeout = 0 for */
insert ignore into `laneway_channel` (id, queue, name) values $1...

-- name: lock_free_channels
-- $1: channel ids, $2: now. Skips channels that others hold.
select c.id, c.queue, c.name, c.weight, c.concurrency, c.rate, c.burst,
    c.paused and coalesce(c.paused_until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true), c.turn, c.n, c.leased, c.tat,
    c.credit, c.skips, c.places, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:keys x straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id)
for update skip locked

-- name: wait_for_channel
-- $1: channel id. For a second at most (on MySQL as long as the session waits for locks).
/*M!100300 set statement innodb_lock_wait_timeout = 1 for */
select id from `laneway_channel` force index (primary) where id = $1 for update
