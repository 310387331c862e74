-- $1: now, $2: how many. Whole days (UTC), the oldest first; while lakes are in use, only what all
-- of them hold for certain.
delete from "penstock_history" where id in (
    select id from (select id, ended_at from "penstock_history" order by id limit $2)
    where ended_at < $1 - $1 % 86400000000
        - (select history_days from "penstock_state") * 86400000000
        and id <= coalesce((select s.id from "penstock_lake_sure" s), id))
returning 1
