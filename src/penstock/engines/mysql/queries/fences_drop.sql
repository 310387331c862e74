-- $1: ids.
delete from `penstock_fence` where id in ($1...)
