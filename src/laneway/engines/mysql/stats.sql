-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from `laneway_history` where message_id = $1 order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from `laneway_setting`

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null leaves a setting as it is.
update `laneway_setting` set history = coalesce($1, history), history_days = coalesce($2, history_days),
    backoff_initial = coalesce($3, backoff_initial), backoff_max = coalesce($4, backoff_max),
    audit_days = coalesce($5, audit_days)

-- name: forget_kind_counts
-- The history is not fully kept, or was not until now.
update `laneway_fold` set known = false
