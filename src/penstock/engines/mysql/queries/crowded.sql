-- $1: what is many. Whether there is anything to add up or to forget: counts of dead letters, fences,
-- and when the oldest entry of the history ended.
select (select count(*) from (select 1 from `penstock_dead_count` limit $1) d),
    (select count(*) from (select 1 from `penstock_fence` limit $1) f),
    (select ended_at from `penstock_history` order by id limit 1)
