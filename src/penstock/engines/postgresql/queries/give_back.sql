-- $1: ids, $2: fences, $3: delays, $4: now.
select id, fence, status
from "penstock".give_back_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS timestamptz))
