-- $1: wake ids.
delete t from $1:ids x straight_join `penstock_wake` t force index (primary) on t.id = x.id
