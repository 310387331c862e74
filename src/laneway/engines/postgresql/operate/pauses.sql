-- name: pause_queue
-- $1: queue, $2: kind, or null for all, $3: for how long, $4: actor, $5: reason, $6: now.
select queue, kind, until, since, actor, reason
from "laneway".pause_queue_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS interval), CAST($4 AS text), CAST($5 AS text),
    CAST($6 AS timestamptz))

-- name: resume_queue
-- $1: queue, $2: kind, or null for all, $3: now.
select "laneway".resume_queue_v1(CAST($1 AS text), CAST($2 AS text), CAST($3 AS timestamptz))

-- name: pauses
-- $1: queue, or null for all, $2: now.
select queue, kind, until, since, actor, reason
from "laneway".pause
where (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (until is null or until > coalesce(CAST($2 AS timestamptz), clock_timestamp()))
order by queue, kind nulls first
