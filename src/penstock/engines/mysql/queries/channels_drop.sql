-- $1: channels, owned.
delete from `penstock_channel` where id in ($1...)
