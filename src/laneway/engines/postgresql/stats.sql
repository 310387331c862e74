-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at,
    case when isfinite(due) then due end, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway".history_v1
where message_id = CAST($1 AS bigint)
order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from "laneway".setting

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null leaves it as it is.
update "laneway".setting set
    history = coalesce(CAST($1 AS text), history),
    history_changes = history_changes + CAST(coalesce(CAST($1 AS text), history) <> history AS integer),
    history_days = coalesce(CAST($2 AS integer), history_days),
    backoff_initial = coalesce(CAST($3 AS interval), backoff_initial),
    backoff_max = coalesce(CAST($4 AS interval), backoff_max),
    audit_days = coalesce(CAST($5 AS integer), audit_days)
returning history, history_days, backoff_initial, backoff_max, audit_days
