-- $1: message ids, all locked by us.
delete from `penstock_lease` where message_id in ($1...)
