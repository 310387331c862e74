-- $1: ids, $2: fences, $3: length, $4: now.
select id, fence, status
from "penstock".hold_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval), CAST($4 AS timestamptz))
