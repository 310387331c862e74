-- $1: wake ids.
delete from `penstock_wake` where id in ($1...)
