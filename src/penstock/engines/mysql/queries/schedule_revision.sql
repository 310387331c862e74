-- $1: queue, $2: name. Locked by us already, if it is there.
select revision from `penstock_schedule` where queue = $1 and name = $2 for update
