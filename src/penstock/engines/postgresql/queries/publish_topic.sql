-- $1: topic; $2..$14: the columns of Draft without the queue as arrays, null where none has a value;
-- $15: now.
select ordinal, queue, id, status
from "penstock".publish_topic_v1(
    CAST($1 AS text), CAST($2 AS bytea[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    coalesce(CAST($6 AS text[]), '{}'), coalesce(CAST($7 AS text[]), '{}'),
    coalesce(CAST($8 AS interval[]), '{}'), CAST($9 AS smallint[]),
    coalesce(CAST($10 AS interval[]), '{}'), coalesce(CAST($11 AS timestamptz[]), '{}'),
    coalesce(CAST($12 AS interval[]), '{}'), coalesce(CAST($13 AS timestamptz[]), '{}'),
    CAST($14 AS integer[]), CAST($15 AS timestamptz))
