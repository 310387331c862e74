-- name: prepare
-- A transaction that a test left open is an error, and not an endless wait.
set local lock_timeout = '10s'

-- name: reset_counts
-- The positions stay: they are of sequences and transactions, which go on.
update "laneway".counting set to_xid = null, to_id = null, to_history = null, noted_at = null, as_of = null,
    depth_at = null

-- name: reset_state
-- Begins a new life of the server: so all clients, wherever they run, forget what they know of the tables.
truncate "laneway".server_life_mark
