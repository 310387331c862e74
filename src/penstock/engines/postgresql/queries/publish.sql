-- $1..$14: the columns of Draft as arrays, null where none has a value; $15: now.
-- Columns come back too; the second is null if all were published, as they mostly are.
select array_agg(p.id), case when not bool_and(p.status = 'published') then array_agg(p.status) end
from "penstock".publish_v1(
    CAST($1 AS bytea[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    coalesce(CAST($6 AS text[]), '{}'), coalesce(CAST($7 AS text[]), '{}'),
    coalesce(CAST($8 AS interval[]), '{}'), CAST($9 AS smallint[]),
    coalesce(CAST($10 AS interval[]), '{}'), coalesce(CAST($11 AS timestamptz[]), '{}'),
    coalesce(CAST($12 AS interval[]), '{}'), coalesce(CAST($13 AS timestamptz[]), '{}'),
    CAST($14 AS integer[]), CAST($15 AS timestamptz)) p
