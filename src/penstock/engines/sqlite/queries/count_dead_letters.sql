-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: ids; null matches all.
-- $8: where to stop counting.
select count(*) from (
    select id from "penstock_dead"
    where ($1 is null or queue = $1) and ($2 is null or channel = $2) and ($3 is null or kind = $3)
        and ($4 is null or reason = $4) and ($5 is null or died_at >= $5)
        and ($6 is null or died_at < $6)
        and ($7 is null or id in (select value from json_each($7)))
    limit $8)
