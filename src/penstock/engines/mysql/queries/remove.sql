-- $1: channels, owned.
update `penstock_channel` set closing = true, gated = 1 where id in ($1...)
