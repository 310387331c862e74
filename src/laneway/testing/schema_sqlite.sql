-- name: prepare
-- A channel in use is not deleted.
update "laneway_channel" set waiting = 0, leased = 0

-- name: reset_counts
update "laneway_fold" set noted_to = 0, count_at = 0

-- name: reset_state
update "laneway_state" set by_kind = 0, flows = 0, fair = 0
