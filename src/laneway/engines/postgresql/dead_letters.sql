-- name: redrive
-- $1: ids, $2: new max_attempts, $3: delay, $4: now.
select id
from "laneway".redrive_v1(
    CAST($1 AS bigint[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS timestamptz))

-- name: discard
-- $1: ids, $2: now.
select id from "laneway".discard_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))
