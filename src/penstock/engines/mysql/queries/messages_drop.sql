-- $1: message ids.
delete from `penstock_message` where id in ($1...)
