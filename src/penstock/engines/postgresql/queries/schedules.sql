-- $1: queue, null for all; $2 and $3: queue and name of the last one seen; $4: limit.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision
from "penstock".schedule_v1 s
where (CAST($1 AS text) is null or s.queue = CAST($1 AS text))
    and (s.queue, s.name) > (coalesce(CAST($2 AS text), ''), coalesce(CAST($3 AS text), ''))
order by s.queue, s.name
limit CAST($4 AS integer)
