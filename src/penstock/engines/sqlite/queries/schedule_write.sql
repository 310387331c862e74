-- $1..$27: the columns of Schedule.
insert or replace into "penstock_schedule" (
    queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27)
