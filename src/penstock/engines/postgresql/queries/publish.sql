-- $1..$14: the columns of Draft as arrays; $15: now.
select id, status
from "penstock".publish_v1(
    CAST($1 AS bytea[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    CAST($6 AS text[]), CAST($7 AS text[]), CAST($8 AS interval[]), CAST($9 AS smallint[]),
    CAST($10 AS interval[]), CAST($11 AS timestamptz[]), CAST($12 AS interval[]),
    CAST($13 AS timestamptz[]), CAST($14 AS integer[]), CAST($15 AS timestamptz))
