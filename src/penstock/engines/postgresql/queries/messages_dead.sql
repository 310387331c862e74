-- $1: queue, $2: channel, $3: kind; null matches all. $4: id of the last one seen, $5: limit.
select id, queue, channel, kind, key, 'dead' as state, priority, CAST(null AS timestamptz) as due,
    published_at, first_published_at, CAST(null AS timestamptz) as expires_at, attempt, max_attempts,
    content_type, CAST(headers AS text) as headers, payload_size, CAST(null AS bigint) as fence,
    CAST(null AS text) as worker, CAST(null AS timestamptz) as claimed_at,
    CAST(null AS timestamptz) as until, died_at, reason, error_type, error
from "penstock".dead_letter_v1
where id > CAST($4 AS bigint)
    and (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
order by id
limit CAST($5 AS integer)
