-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: ids; null matches all.
-- $8: where to stop counting.
select count(*) from (
    select id from "penstock".dead_letter_v1
    where (CAST($1 AS text) is null or queue = CAST($1 AS text))
        and (CAST($2 AS text) is null or channel = CAST($2 AS text))
        and (CAST($3 AS text) is null or kind = CAST($3 AS text))
        and (CAST($4 AS text) is null or reason = CAST($4 AS text))
        and died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')
        and died_at < coalesce(CAST($6 AS timestamptz), 'infinity')
        and (CAST($7 AS bigint[]) is null or id = any(CAST($7 AS bigint[])))
    limit CAST($8 AS integer)
) d
