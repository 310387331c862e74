-- name: schedules
-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `laneway_schedule` s
where ($1 is null or s.queue = $1) and ($2 is null or s.queue > $2 or (s.queue = $2 and s.name > $3))
order by s.queue, s.name limit $4

-- name: schedule_read
-- $1: queue, $2: name.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `laneway_schedule` s where s.queue = $1 and s.name = $2

-- name: schedule_read_locked
-- $1: queue, $2: name. The current row, whatever snapshot the transaction reads.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `laneway_schedule` s where s.queue = $1 and s.name = $2 for update

-- name: schedule_add
-- $1: rows. One that exists already stays as it is.
insert into `laneway_schedule` (queue, name, cron, every, zone, start, catch_up, grace, topic, channel,
    kind, `key`, key_window, priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor,
    paused, next_at, look_at, last_at, fired, error, revision)
values $1...
on duplicate key update revision = `laneway_schedule`.revision

-- name: schedule_change
-- $1..$26: the columns after queue and name; $27 and $28: queue and name; $29 and $30: the revision
-- and next_at that were read.
update `laneway_schedule` set cron = $1, every = $2, zone = $3, start = $4, catch_up = $5, grace = $6,
    topic = $7, channel = $8, kind = $9, `key` = $10, key_window = $11, priority = $12, headers = $13,
    content_type = $14, payload = $15, expires_in = $16, max_attempts = $17, key_scope = $18, anchor = $19, paused = $20,
    next_at = $21, look_at = $22, last_at = $23, fired = $24, error = $25, revision = $26
where queue = $27 and name = $28 and revision = $29 and next_at = $30

-- name: schedule_revision
-- $1: queue, $2: name. Locks it.
select revision from `laneway_schedule` where queue = $1 and name = $2 for update

-- name: schedule_remove
-- $1: queue, $2: name.
delete from `laneway_schedule` where queue = $1 and name = $2

-- name: schedule_due
-- $1: now, $2: limit. Locks what is due and skips what another session is firing or editing.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `laneway_schedule` s force index (schedule_look)
where s.look_at <= $1 order by s.look_at limit $2 for update skip locked

-- name: schedule_due_in_queues
-- As schedule_due, for some queues. $1: now, $2: limit, $3: queues.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `laneway_schedule` s force index (schedule_look)
where s.look_at <= $1 and s.queue in ($3...) order by s.look_at limit $2 for update skip locked

-- name: schedule_next
-- $1: now. When the first one that is due was due, and when the next one is.
select (select min(look_at) from `laneway_schedule` where look_at <= $1),
    (select min(look_at) from `laneway_schedule` where look_at > $1)

-- name: schedule_next_in_queues
-- As schedule_next, for some queues. $1: now, $2: queues.
select (select min(look_at) from `laneway_schedule` where look_at <= $1 and queue in ($2...)),
    (select min(look_at) from `laneway_schedule` where look_at > $1 and queue in ($2...))

-- name: schedule_move
-- $1: queue, $2: name, $3: revision, $4: the tick that fired, $5: next_at, $6: look_at, $7: last_at,
-- $8: how many were fired, $9: error. Locked by us.
update `laneway_schedule` set next_at = $5, look_at = $6, last_at = $7, fired = fired + $8, error = $9
where queue = $1 and name = $2 and revision = $3 and next_at = $4

-- name: dead_key_holders
-- $1: ids of keys. The dead letters that hold them, locked, so that they are not redriven meanwhile.
select t.id, d.id from $1:keys x
straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
straight_join `laneway_dead` d force index (primary) on d.id = t.message_id
for update

-- name: free_dead_keys
-- $1: ids of keys, $2: the dead letters that hold them.
delete t from $1:keys x
straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id) and t.message_id in ($2...)

-- name: forget_dead_keys
-- $1: ids of dead letters.
update $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
set d.`key` = null, d.key_window = null

-- name: add_revision
-- Returns a number that only rises.
insert into `laneway_fence` () values ()
