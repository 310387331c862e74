-- $1..$5: the columns of Failure as arrays; $6: now.
select id, fence, status
from "penstock".fail_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS text[]), CAST($4 AS text[]),
    CAST($5 AS text[]), CAST($6 AS timestamptz))
