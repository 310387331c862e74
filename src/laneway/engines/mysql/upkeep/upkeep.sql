-- name: try_lock_task
-- $1: name. No row if another session is doing it.
select n from `laneway_turnstile` where name = $1 for update skip locked

-- name: upkeep_settings
-- $1: now.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    history, history_days, backoff_initial, backoff_max
from `laneway_setting`
