-- Locks what is due and what nobody else is firing or editing. $1: queues, null for all; $2: limit,
-- $3: now. The last column is the time by which it was due.
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind,
    s.key, s.key_window, s.priority, CAST(s.headers AS text) as headers, s.content_type, s.payload,
    s.expires_in, s.max_attempts, s.anchor, s.paused, s.next_at, s.look_at, s.last_at, s.fired,
    s.error, s.revision, c.now
from (select coalesce(CAST($3 AS timestamptz), clock_timestamp()) as now offset 0) c
cross join "penstock".schedule s
where s.look_at <= c.now and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))
order by s.look_at, s.queue, s.name
limit CAST($2 AS integer)
for update of s skip locked
