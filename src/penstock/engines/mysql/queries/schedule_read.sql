-- $1: queue, $2: name.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `penstock_schedule` s where s.queue = $1 and s.name = $2
