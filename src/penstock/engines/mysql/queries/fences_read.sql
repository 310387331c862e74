-- $1: how many. The counter remembers the last number without them.
select id from `penstock_fence` order by id limit $1
