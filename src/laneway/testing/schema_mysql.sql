-- name: prepare
-- A transaction that a test left open is an error soon.
set session innodb_lock_wait_timeout = 10

-- name: reset_counts
update `laneway_fold` set seen_at = 0, counted_at = null, noted = 0

-- name: reset_state
update `laneway_turnstile` set by_kind = 0, fair = 0
