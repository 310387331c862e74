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

-- name: server_life
-- The number of this life of the server; 0: none has begun, or this session does not know yet what server it is on.
select coalesce((
    select if(concat(connection_id(), ' ', l.server) = @laneway_server, l.number, 0)
    from `laneway_server_life` l order by l.id desc limit 1), 0)

-- name: know_server
-- For this session: the server's name, and when it started, exactly (both times are those of this statement).
set @laneway_server = (
    select concat(connection_id(), ' ',
        /*M! concat(@@hostname, ':', @@port, ':', @@server_id) */ /*!80000 @@server_uuid */,
        ' ', unix_timestamp() - cast(variable_value as signed))
    from /*M! information_schema.global_status */ /*!80000 performance_schema.global_status */
    where variable_name = 'Uptime')

-- name: life_clock
-- Not the clock of tests.
select timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))

-- name: before_numbers
savepoint laneway_life

-- name: undo_numbers
rollback to savepoint laneway_life

-- name: add_life
-- $1: number.
insert into `laneway_server_life` (number, server)
values ($1, substring(@laneway_server, locate(' ', @laneway_server) + 1))

-- name: number_message
-- Here and below: $1: an id, or null for the next one. Answers it. The row is never committed.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, max_attempts, priority, queue,
    channel, kind, content_type, payload)
values ($1, '', 0, 0, 0, 1, 0, '', '', '', '', '')

-- name: number_fence
insert into `laneway_fence` (id) values ($1)

-- name: number_history
insert into `laneway_history` (id, message_id, attempt, ended_at, terminal, dead, queue, channel, kind, outcome)
values ($1, 0, 0, 0, false, false, '', '', '', '')

-- name: number_flow
insert into `laneway_flow` (id, queue, name, created_at, keep) values ($1, '', '', 0, 0)

-- name: number_listener
insert into `laneway_listener` (id, until, read_to) values ($1, 0, 0)

-- name: number_operation
insert into `laneway_operation` (id, action, wanted, options, actor, started_at) values ($1, '', '', '', '', 0)
