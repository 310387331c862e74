-- $1 and $2: xid and id of the last one seen, $3: limit. Only what no open transaction can still
-- come before. The first column is for the next position.
select xid, id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at,
    case when isfinite(due) then due end, claimed_at, ended_at, payload_size,
    terminal, dead
from "penstock".history_v1
where xid >= CAST($1 AS bigint)
    and xid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
    and (xid, id) > (CAST($1 AS bigint), CAST($2 AS bigint))
order by xid, id
limit CAST($3 AS integer)
