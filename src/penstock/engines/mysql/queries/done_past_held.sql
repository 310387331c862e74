-- $1: ids in order, $2: now.
select t.id from $1:keys x
straight_join `penstock_done` t force index (primary) on t.id = unhex(x.id) and t.keep_until <= $2
for update skip locked
