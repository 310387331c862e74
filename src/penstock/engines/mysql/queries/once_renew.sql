-- $1: keep_until, $2: id, locked by us.
update `penstock_done` force index (primary) set keep_until = $1 where id = $2
