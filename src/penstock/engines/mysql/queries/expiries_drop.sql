-- $1: (expires_at, message_id).
delete from `penstock_expiry` where (expires_at, message_id) in ($1...)
