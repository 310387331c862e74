-- $1: message ids.
delete t from $1:ids x straight_join `penstock_message` t force index (primary) on t.id = x.id
