-- $1: (message_id, fence).
delete from `penstock_stray` where (message_id, fence) in ($1...)
