-- $1: stamp, $2: ids.
update `penstock_history` set settled = $1 where id in ($2...)
