-- $1: ids.
delete t from $1:ids x straight_join `penstock_listener` t force index (primary) on t.id = x.id
