-- $1..$26: the columns of Schedule without the revision; $27 and $28: the revision and
-- the tick that were read, null if there was no row. Answers the new revision, or no row if somebody
-- else was faster: an edit, or a firing that moved the tick.
insert into "penstock".schedule as s (
    queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision)
values (
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS interval), CAST($5 AS text),
    CAST($6 AS timestamptz), CAST($7 AS text), CAST($8 AS interval), CAST($9 AS text),
    CAST($10 AS text), CAST($11 AS text), CAST($12 AS text), CAST($13 AS interval),
    CAST($14 AS smallint), CAST(CAST($15 AS text) AS jsonb), CAST($16 AS text), CAST($17 AS bytea),
    CAST($18 AS interval), CAST($19 AS integer), CAST($20 AS timestamptz), CAST($21 AS boolean),
    CAST($22 AS timestamptz), CAST($23 AS timestamptz), CAST($24 AS timestamptz),
    CAST($25 AS bigint), CAST($26 AS text), nextval('"penstock".schedule_revision'))
on conflict (queue, name) do update set
    cron = excluded.cron, every = excluded.every, zone = excluded.zone, start = excluded.start,
    catch_up = excluded.catch_up, grace = excluded.grace, topic = excluded.topic,
    channel = excluded.channel, kind = excluded.kind, key = excluded.key,
    key_window = excluded.key_window, priority = excluded.priority, headers = excluded.headers,
    content_type = excluded.content_type, payload = excluded.payload,
    expires_in = excluded.expires_in, max_attempts = excluded.max_attempts,
    anchor = excluded.anchor, paused = excluded.paused, next_at = excluded.next_at,
    look_at = excluded.look_at, last_at = excluded.last_at, fired = excluded.fired,
    error = excluded.error, revision = excluded.revision
where s.revision = CAST($27 AS bigint) and s.next_at = CAST($28 AS timestamptz)
returning s.revision
