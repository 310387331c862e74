-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until; null matches all.
-- $7: limit, $8 and $9: died_at and id of the last one seen, $10: where the first page said to
-- end, $11: now.
select id, died_at, end_at
from "penstock".dead_letter_v1
cross join (
    select coalesce(CAST($10 AS timestamptz), CAST($11 AS timestamptz), clock_timestamp()) as end_at
) e
where (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
    and (CAST($4 AS text) is null or reason = CAST($4 AS text))
    and died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')
    and died_at < coalesce(CAST($6 AS timestamptz), 'infinity')
    and died_at <= end_at
    and (died_at, id) > (
        coalesce(CAST($8 AS timestamptz), '-infinity'), coalesce(CAST($9 AS bigint), 0))
order by died_at, id
limit CAST($7 AS integer)
