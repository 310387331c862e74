-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until; null matches all.
-- $7 and $8: died_at and id of the last one seen, $9: limit, $10: where to end.
select id, died_at
from `penstock_dead`
where ($1 is null or queue = $1) and ($2 is null or channel = $2) and ($3 is null or kind = $3)
    and ($4 is null or reason = $4) and ($5 is null or died_at >= $5) and ($6 is null or died_at < $6)
    and ($7 is null or died_at > $7 or (died_at = $7 and id > $8)) and died_at <= $10
order by died_at, id limit $9
