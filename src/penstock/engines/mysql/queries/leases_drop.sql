-- $1: message ids, all locked by us.
delete t from $1:ids x straight_join `penstock_lease` t force index (primary) on t.message_id = x.id
