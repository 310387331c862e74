-- $1: key ids in order, $2: message ids: free again.
delete t from $1:keys x
straight_join `penstock_dedupe` t force index (primary) on t.id = unhex(x.id) and t.message_id in ($2...)
