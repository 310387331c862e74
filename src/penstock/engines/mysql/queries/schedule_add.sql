-- $1: rows. One that is there already stays as it is.
insert into `penstock_schedule` (queue, name, cron, every, zone, start, catch_up, grace, topic, channel,
    kind, `key`, key_window, priority, headers, content_type, payload, expires_in, max_attempts, anchor,
    paused, next_at, look_at, last_at, fired, error, revision)
values $1...
on duplicate key update revision = `penstock_schedule`.revision
