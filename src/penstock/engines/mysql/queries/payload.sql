-- $1: id.
select payload from `penstock_message` where id = $1
union all
select payload from `penstock_dead` where id = $1
