-- $1: channels, owned.
delete t from $1:keys x straight_join `penstock_channel` t force index (primary) on t.id = unhex(x.id)
