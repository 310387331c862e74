-- $1: ids, $2: stamp.
update $1:ids x straight_join `penstock_history` h force index (primary) on h.id = x.id set h.settled = $2
