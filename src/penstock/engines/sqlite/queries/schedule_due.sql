-- $1: queues, null for all; $2: limit, $3: now.
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "penstock_schedule"
where look_at <= $3 and ($1 is null or queue in (select value from json_each($1)))
order by look_at, queue, name limit $2
