-- $1: key ids in order, $2: now.
select t.id from $1:keys x
straight_join `penstock_dedupe` t force index (primary) on t.id = unhex(x.id) and t.expires_at <= $2
for update skip locked
