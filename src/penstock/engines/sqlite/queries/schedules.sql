-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "penstock_schedule"
where ($1 is null or queue = $1) and ($2 is null or (queue, name) > ($2, $3))
order by queue, name limit $4
