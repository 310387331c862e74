-- $1: ids.
delete from `penstock_history` where id in ($1...)
