-- $1: ids.
delete t from $1:keys x straight_join `penstock_done` t force index (primary) on t.id = unhex(x.id)
