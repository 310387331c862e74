-- $1: queue, $2: name, $3: revision, $4: tick, $5: next_at, $6: look_at, $7: last_at, $8: how many were
-- fired, $9: error. Locked by us.
update `penstock_schedule` set next_at = $5, look_at = $6, last_at = $7, fired = fired + $8, error = $9
where queue = $1 and name = $2 and revision = $3 and next_at = $4
