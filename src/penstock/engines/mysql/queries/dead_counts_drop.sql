-- $1: ids.
delete from `penstock_dead_count` where id in ($1...)
