-- $1: message ids in order, all locked by us. Takes back what leases_guard.sql added.
delete t from $1:ids x straight_join `penstock_lease` t force index (primary) on t.message_id = x.id and t.fence = 0
