-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until; null matches all.
-- $7: limit, $8 and $9: died_at and id of the last one seen.
select id, queue, channel, kind, key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, CAST(headers AS text) as headers, payload, reason, error_type, error
from "penstock".dead_letter_v1
where (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
    and (CAST($4 AS text) is null or reason = CAST($4 AS text))
    and died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')
    and died_at < coalesce(CAST($6 AS timestamptz), 'infinity')
    and (died_at, id) > (
        coalesce(CAST($8 AS timestamptz), '-infinity'), coalesce(CAST($9 AS bigint), 0))
order by died_at, id
limit CAST($7 AS integer)
