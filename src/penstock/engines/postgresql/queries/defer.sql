-- $1..$10: the columns of Deferral as arrays; $11: now.
select id, fence, status
from "penstock".defer_v1(
    CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS interval[]), CAST($4 AS timestamptz[]),
    CAST($5 AS boolean[]), CAST($6 AS bytea[]), CAST($7 AS text[]), CAST($8 AS text[]),
    CAST($9 AS text[]), CAST($10 AS text[]), CAST($11 AS timestamptz))
