-- $1: message ids, all locked by us.
update $1:ids x straight_join `penstock_lease` l force index (primary) on l.message_id = x.id
set l.counted = true
