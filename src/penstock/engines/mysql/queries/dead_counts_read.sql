-- $1: how many.
select id, queue, channel, n from `penstock_dead_count` order by id limit $1
