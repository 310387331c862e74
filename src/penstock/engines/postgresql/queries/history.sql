-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at,
    case when isfinite(due) then due end, claimed_at, ended_at, payload_size,
    terminal, dead
from "penstock".history_v1
where message_id = CAST($1 AS bigint)
order by id
