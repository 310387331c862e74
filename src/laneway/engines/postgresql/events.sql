-- name: listen
-- $1..$4: the columns of EventFilter, null for all; $5: for how long, $6: now.
select "laneway".listen_v1(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]),
    CAST($5 AS interval), CAST($6 AS timestamptz))

-- name: hear
-- $1: listener, $2: limit, $3: for how long it is renewed, null if not; $4: now.
select alive, behind, at, what, ids, queues, channels, kinds
from "laneway".hear_v1(
    CAST($1 AS bigint), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS timestamptz))

-- name: unlisten
-- $1: listener, $2: now.
select CAST("laneway".unlisten_v1(CAST($1 AS bigint), CAST($2 AS timestamptz)) AS text)

-- name: endings
-- $1: ids. One row each, in order.
select id, outcome, ended_at, reason, error_type, error, kept_until from "laneway".endings_v1(CAST($1 AS bigint[]))

-- name: results
-- $1: ids, $2: now.
select message_id, content_type, payload from "laneway".results_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))
