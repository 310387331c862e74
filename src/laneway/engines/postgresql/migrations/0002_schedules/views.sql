create view "laneway".schedule_v1 as
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.key,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.anchor, s.paused,
    s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from "laneway".schedule s;
