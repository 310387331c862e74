-- $1: how many. Ids follow the time, but for what was in a long transaction.
select id, ended_at from `penstock_history` order by id limit $1
