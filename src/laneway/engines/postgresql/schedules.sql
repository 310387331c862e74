-- name: schedule_remove
-- $1: queue, $2: name.
delete from "laneway".schedule where queue = CAST($1 AS text) and name = CAST($2 AS text)
returning name

-- name: schedules
-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.key_scope, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision
from "laneway".schedule_v1 s
where (CAST($1 AS text) is null or s.queue = CAST($1 AS text))
    and (s.queue, s.name) > (coalesce(CAST($2 AS text), ''), coalesce(CAST($3 AS text), ''))
order by s.queue, s.name
limit CAST($4 AS integer)

-- name: schedule_due
-- Locks due schedules, except those that others are firing or editing. $1: queues, null for all; $2: limit,
-- $3: now. The last column is the time by which it was due.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.key_scope, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision, c.now
from (select coalesce(CAST($3 AS timestamptz), clock_timestamp()) as now offset 0) c
cross join "laneway".schedule s
where s.look_at <= c.now and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))
order by s.look_at, s.queue, s.name
limit CAST($2 AS integer)
for update of s skip locked

-- name: schedule_move
-- $1..$9: the columns of Move as arrays. Only rows of the same revision at the same tick are moved.
update "laneway".schedule s set
    next_at = m.next_at, look_at = m.look_at, last_at = m.last_at, fired = s.fired + m.fired, error = m.error
from unnest(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS bigint[]), CAST($4 AS timestamptz[]),
    CAST($5 AS timestamptz[]), CAST($6 AS timestamptz[]), CAST($7 AS timestamptz[]),
    CAST($8 AS bigint[]), CAST($9 AS text[])
) m(queue, name, revision, tick, next_at, look_at, last_at, fired, error)
where s.queue = m.queue and s.name = m.name and s.revision = m.revision and s.next_at = m.tick
returning s.queue, s.name

-- name: schedule_next
-- $1: queues, null for all; $2: now. Whether something is due, and how long until the next tick after
-- now (null: none).
select
    exists (
        select from "laneway".schedule s where s.look_at <= c.now
            and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))) as due,
    (
        select min(s.look_at) from "laneway".schedule s where s.look_at > c.now
            and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))) - c.now as next_in
from (select coalesce(CAST($2 AS timestamptz), clock_timestamp()) as now offset 0) c

-- name: schedule_read
-- $1: queue, $2: name, $3: now. One row: the schedule, all null if there is none, and the time.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.key_scope, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision, c.now
from (select coalesce(CAST($3 AS timestamptz), clock_timestamp()) as now) c
left join "laneway".schedule s on s.queue = CAST($1 AS text) and s.name = CAST($2 AS text)

-- name: schedule_write
-- $1..$27: the columns of Schedule without the revision; $28 and $29: the revision and
-- the tick that were read, null if there was no row. Answers the new revision, or no row if it was
-- changed meanwhile: by an edit, or by a firing that moved the tick.
insert into "laneway".schedule as s (
    queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision)
values (
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS interval), CAST($5 AS text),
    CAST($6 AS timestamptz), CAST($7 AS text), CAST($8 AS interval), CAST($9 AS text),
    CAST($10 AS text), CAST($11 AS text), CAST($12 AS text), CAST($13 AS interval),
    CAST($14 AS smallint), CAST(CAST($15 AS text) AS jsonb), CAST($16 AS text), CAST($17 AS bytea),
    CAST($18 AS interval), CAST($19 AS integer), CAST($20 AS text), CAST($21 AS timestamptz), CAST($22 AS boolean),
    CAST($23 AS timestamptz), CAST($24 AS timestamptz), CAST($25 AS timestamptz),
    CAST($26 AS bigint), CAST($27 AS text),
    case when "laneway".server_life_v1() > 0 then nextval('"laneway".schedule_revision') end)
on conflict (queue, name) do update set
    cron = excluded.cron, every = excluded.every, zone = excluded.zone, start = excluded.start,
    catch_up = excluded.catch_up, grace = excluded.grace, topic = excluded.topic,
    channel = excluded.channel, kind = excluded.kind, key = excluded.key,
    key_window = excluded.key_window, priority = excluded.priority, headers = excluded.headers,
    content_type = excluded.content_type, payload = excluded.payload,
    expires_in = excluded.expires_in, max_attempts = excluded.max_attempts, key_scope = excluded.key_scope,
    anchor = excluded.anchor, paused = excluded.paused, next_at = excluded.next_at,
    look_at = excluded.look_at, last_at = excluded.last_at, fired = excluded.fired,
    error = excluded.error, revision = excluded.revision
where s.revision = CAST($28 AS bigint) and s.next_at = CAST($29 AS timestamptz)
returning s.revision

-- name: free_dead_keys
-- $1: queues, $2: keys. Those that dead letters held, and hold no longer.
select queue, key from "laneway".free_dead_keys_v1(CAST($1 AS text[]), CAST($2 AS text[]))
