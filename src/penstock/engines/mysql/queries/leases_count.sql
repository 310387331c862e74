-- $1: message ids, all locked by us.
update `penstock_lease` set counted = true where message_id in ($1...)
