-- $1: key ids, in their order.
delete t from $1:keys x straight_join `penstock_dedupe` t force index (primary) on t.id = unhex(x.id)
