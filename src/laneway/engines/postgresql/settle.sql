-- name: complete
-- $1: ids, $2: fences, $3: now.
select id, fence, status
from "laneway".complete_v1(CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS timestamptz))

-- name: complete_after_waits
-- $1: ids, $2: fences, $3: milliseconds from the claim to the handler's start by id, as JSON, $4: now.
select id, fence, status
from "laneway".complete_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($4 AS timestamptz), CAST($3 AS jsonb))

-- name: end_cancelled
-- $1: ids, $2: fences, $3: as in complete_after_waits, or null, $4: now.
select id, fence, status
from "laneway".complete_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($4 AS timestamptz), CAST($3 AS jsonb), 'cancelled')

-- name: complete_kept
-- $1: ids, $2: fences; $3..$7: ids, fences, lengths, content types and bytes of the results to keep;
-- $8: as in complete_after_waits, $9: outcome, $10: now.
select id, fence, status
from "laneway".complete_kept_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS bigint[]), CAST($4 AS bigint[]), CAST($5 AS interval[]),
    CAST($6 AS text[]), CAST($7 AS bytea[]), CAST($10 AS timestamptz), CAST($8 AS jsonb), CAST($9 AS text))

-- name: defer
-- $1..$12: the columns of Deferral as arrays; $13: now.
select id, fence, status
from "laneway".defer_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS timestamptz[]),
    CAST($5 AS boolean[]), CAST($6 AS bytea[]), CAST($7 AS text[]), CAST($8 AS text[]),
    CAST($9 AS text[]), CAST($10 AS text[]), CAST($13 AS timestamptz), CAST($11 AS integer[]),
    CAST($12 AS text[]))

-- name: fail
-- $1..$7: the columns of Failure as arrays; $8: now.
select id, fence, status
from "laneway".fail_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS text[]), CAST($4 AS text[]),
    CAST($5 AS text[]), CAST($8 AS timestamptz), CAST($6 AS integer[]), CAST($7 AS text[]))

-- name: extend
-- $1: ids, $2: fences, $3: lengths, $4: now.
select id, fence, status, until
from "laneway".extend_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS timestamptz))

-- name: hold
-- $1: ids, $2: fences, $3: length, $4: now.
select id, fence, status
from "laneway".hold_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval), CAST($4 AS timestamptz))

-- name: give_back
-- $1: ids, $2: fences, $3: delays, $4: now.
select id, fence, status
from "laneway".give_back_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS timestamptz))

-- name: once
-- $1: queue, $2: key, $3: how long to keep it, $4: now.
select "laneway".once_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS interval), CAST($4 AS timestamptz))

-- name: cancel
-- $1: ids, $2: now.
select id, status from "laneway".cancel_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))

-- name: extend_progress
-- $1: ids, $2: fences, $3: lengths, $4..$7: the columns of ProgressNote as arrays, $8: now.
select id, fence, status, until
from "laneway".extend_progress_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS bigint[]), CAST($5 AS bigint[]),
    CAST($6 AS double precision[]), CAST($7 AS text[]), CAST($8 AS timestamptz))

-- name: hold_progress
-- $1: ids, $2: fences, $3: length, $4..$7: the columns of ProgressNote as arrays, $8: now.
select id, fence, status
from "laneway".hold_progress_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval), CAST($4 AS bigint[]), CAST($5 AS bigint[]),
    CAST($6 AS double precision[]), CAST($7 AS text[]), CAST($8 AS timestamptz))

-- name: progress
-- $1: ids.
select message_id, share, note, at, fence from "laneway".progress_v1 where message_id = any(CAST($1 AS bigint[]))
