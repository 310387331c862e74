-- As schedule_due.sql, of some queues only. $1: now, $2: limit, $3: queues.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.`key`,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.anchor,
    s.paused, s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from `penstock_schedule` s force index (schedule_look)
where s.look_at <= $1 and s.queue in ($3...) order by s.look_at limit $2 for update skip locked
