-- $1: ids.
delete from `penstock_done` where id in ($1...)
