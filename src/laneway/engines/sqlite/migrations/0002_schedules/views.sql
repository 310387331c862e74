create view "laneway_schedule_v1" as
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule";
