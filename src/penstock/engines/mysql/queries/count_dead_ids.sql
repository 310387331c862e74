-- $1: ids, $2: where to stop counting.
select count(*) from (select 1 from `penstock_dead` where id in ($1...) limit $2) d
