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
