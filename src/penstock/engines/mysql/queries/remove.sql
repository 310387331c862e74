-- $1: channels, owned.
update $1:keys x straight_join `penstock_channel` c force index (primary) on c.id = unhex(x.id)
set c.closing = true, c.gated = 1
