-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until; null matches all. $7: where to
-- stop counting.
select count(*) from (
    select 1 from `penstock_dead`
    where ($1 is null or queue = $1) and ($2 is null or channel = $2) and ($3 is null or kind = $3)
        and ($4 is null or reason = $4) and ($5 is null or died_at >= $5) and ($6 is null or died_at < $6)
    limit $7) d
