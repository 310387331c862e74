-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `penstock_schedule` s
where ($1 is null or s.queue = $1) and ($2 is null or s.queue > $2 or (s.queue = $2 and s.name > $3))
order by s.queue, s.name limit $4
