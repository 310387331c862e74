-- $1: now, $2: how many. Whole days (UTC), the oldest first. While lakes are in use, only what all of them
-- hold for certain: what lies before their first batch that is not verified, or else before their end.
delete from "penstock_history" where id in (
    select id from (select id, ended_at from "penstock_history" order by id limit $2)
    where ended_at < $1 - $1 % 86400000000
        - (select history_days from "penstock_state") * 86400000000
        and id <= coalesce((select min(b.sure) from (
            select coalesce(min(case when c.state in ('planned', 'written') then c.from_id end), max(c.to_id)) as sure
            from "penstock_lake_commit" c group by c.lake) b), id))
returning 1
