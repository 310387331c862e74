-- $1: ids, $2: new budget of attempts, $3: delay, $4: now.
select id
from "penstock".redrive_v1(
    CAST($1 AS bigint[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS timestamptz))
