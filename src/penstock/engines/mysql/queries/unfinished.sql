-- $1: ids. Which of them are still there, and which are dead.
select id, 'leased' from `penstock_message` where id in ($1...)
union all
select id, 'dead' from `penstock_dead` where id in ($1...)
