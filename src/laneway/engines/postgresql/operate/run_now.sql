-- name: run_now
-- $1: ids, $2: now.
select id, status from "laneway".run_now_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))
