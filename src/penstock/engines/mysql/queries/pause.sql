-- $1: channels, owned, $2: paused or resumed.
update $1:keys x straight_join `penstock_channel` c force index (primary) on c.id = unhex(x.id)
set c.paused = $2
