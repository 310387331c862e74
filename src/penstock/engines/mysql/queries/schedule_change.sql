-- $1..$25: the columns after queue and name; $26 and $27: queue and name; $28 and $29: the revision
-- and the tick that were read.
update `penstock_schedule` set cron = $1, every = $2, zone = $3, start = $4, catch_up = $5, grace = $6,
    topic = $7, channel = $8, kind = $9, `key` = $10, key_window = $11, priority = $12, headers = $13,
    content_type = $14, payload = $15, expires_in = $16, max_attempts = $17, anchor = $18, paused = $19,
    next_at = $20, look_at = $21, last_at = $22, fired = $23, error = $24, revision = $25
where queue = $26 and name = $27 and revision = $28 and next_at = $29
