-- name: schedules
-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule"
where ($1 is null or queue = $1) and ($2 is null or (queue, name) > ($2, $3))
order by queue, name limit $4

-- name: schedule_read
-- $1: queue, $2: name.
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule" where queue = $1 and name = $2

-- name: schedule_write
-- $1..$28: the columns of Schedule.
insert or replace into "laneway_schedule" (
    queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28)

-- name: schedule_remove
-- $1: queue, $2: name.
delete from "laneway_schedule" where queue = $1 and name = $2 returning name

-- name: schedule_due
-- $1: queues, null for all; $2: limit, $3: now.
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule"
where look_at <= $3 and ($1 is null or queue in (select value from json_each($1)))
order by look_at, queue, name limit $2

-- name: schedule_next
-- $1: queues, null for all. When the next schedule is due to be checked.
select min(look_at) from "laneway_schedule"
where look_at is not null and ($1 is null or queue in (select value from json_each($1)))

-- name: schedule_move
-- $1..$9: the columns of Move. Does nothing if the revision or the tick has changed since it was read.
update "laneway_schedule" set
    next_at = $5, look_at = $6, last_at = $7, fired = fired + $8, error = $9
where queue = $1 and name = $2 and revision = $3 and next_at = $4

-- name: free_dead_key
-- $1: queue, $2: key. Takes the key from the dead letter that holds it; returns its id.
delete from "laneway_dedupe" where queue = $1 and key = $2
    and exists (select 1 from "laneway_dead" d where d.id = "laneway_dedupe".message_id)
returning message_id

-- name: forget_dead_key
-- $1: the dead letter.
update "laneway_dead" set key = null, key_window = null where id = $1
