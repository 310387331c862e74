-- $1: message ids, locked by us, $2: until. Never shortens.
update $1:ids x straight_join `penstock_lease` l force index (primary) on l.message_id = x.id
set l.until = greatest(l.until, $2)
