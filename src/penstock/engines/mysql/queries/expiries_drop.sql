-- $1: message ids.
delete t from $1:ids x straight_join `penstock_expiry` t force index (primary) on t.message_id = x.id
