-- $1: queue, $2: name, $3: now. One row: the schedule, all null if there is none, and the time.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision, c.now
from (select coalesce(CAST($3 AS timestamptz), clock_timestamp()) as now) c
left join "penstock".schedule s on s.queue = CAST($1 AS text) and s.name = CAST($2 AS text)
