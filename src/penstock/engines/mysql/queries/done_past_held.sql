-- $1: ids in order, $2: now.
select id from `penstock_done` force index (primary) where id in ($1...) and keep_until <= $2
for update skip locked
