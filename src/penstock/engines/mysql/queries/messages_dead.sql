-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit.
select id, queue, channel, kind, `key`, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, octet_length(payload), null, null, null, null,
    died_at, reason, error_type, error
from `penstock_dead`
where id > $4 and ($1 is null or queue = $1) and ($2 is null or channel = $2) and ($3 is null or kind = $3)
order by id limit $5
