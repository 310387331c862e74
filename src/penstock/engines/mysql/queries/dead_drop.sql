-- $1: ids.
delete from `penstock_dead` where id in ($1...)
