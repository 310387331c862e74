-- $1: queue, $2: name.
delete from `penstock_schedule` where queue = $1 and name = $2
