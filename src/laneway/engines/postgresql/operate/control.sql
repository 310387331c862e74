-- name: add_audit
-- $1: actor, $2: source, $3: action, $4: target as JSON, $5: how many, $6: now.
insert into "laneway".audit (at, actor, source, action, target, affected)
values (coalesce(CAST($6 AS timestamptz), clock_timestamp()), CAST($1 AS text), CAST($2 AS text),
    CAST($3 AS text), CAST(CAST($4 AS text) AS jsonb), CAST($5 AS bigint))
returning id

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, CAST(target AS text) as target, affected
from "laneway".audit
where id < coalesce(CAST($2 AS bigint), 9223372036854775807)
order by id desc
limit CAST($1 AS integer)

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

-- name: set_fairness
-- $1: queue, $2: turn in seconds, or null, $3: now.
select turn, since
from "laneway".set_fairness_v1(CAST($1 AS text), CAST($2 AS double precision), CAST($3 AS timestamptz))

-- name: fairness
-- $1: queue.
select turn, since from "laneway".fair_queue where queue = CAST($1 AS text)

-- name: time_ahead
-- $1: queue, $2: channels, $3: now.
select channel, ahead
from "laneway".time_ahead_v1(CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS timestamptz))

-- name: run_now
-- $1: ids, $2: now.
select id, status from "laneway".run_now_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))

-- name: worker_seen
-- $1: id, $2: name, $3: host, $4: pid, $5: version, $6: queues, $7: kinds, $8: slots, $9: used,
-- $10: whether it is stopping, $11: now.
select message_id, fence
from "laneway".worker_seen_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS integer), CAST($5 AS text),
    CAST($6 AS text[]), CAST($7 AS text[]), CAST($8 AS integer), CAST($9 AS integer),
    CAST($10 AS boolean), CAST($11 AS timestamptz))

-- name: worker_gone
-- $1: id.
select "laneway".worker_gone_v1(CAST($1 AS text))

-- name: workers
-- $1: limit, $2: now. Those seen last come first.
select id, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < coalesce(CAST($2 AS timestamptz), clock_timestamp()) - interval '30 seconds'
        then 'vanished' when state = 'stopping' then 'stopping' else 'running' end, name
from "laneway".worker_v1
order by seen_at desc, id
limit CAST($1 AS integer)

-- name: cancel_running
-- $1: ids, $2: now.
select id, status from "laneway".cancel_running_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))
