-- $1: queue, $2: channel, $3: kind, $4: state; null matches all but the dead. $5: id of the last one
-- seen, $6: limit, $7: now.
select id, queue, channel, kind, key, state, priority, case when isfinite(due) then due end as due,
    published_at, first_published_at, case when isfinite(expires_at) then expires_at end as expires_at,
    attempt, max_attempts, content_type, CAST(headers AS text) as headers, payload_size, fence, worker,
    claimed_at, until, died_at, reason, error_type, error
from "penstock".messages_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS bigint),
    CAST($6 AS integer), CAST($7 AS timestamptz))
