-- $1: ids, $2: fences, $3: now.
select id, fence, status
from "penstock".complete_v1(CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS timestamptz))
