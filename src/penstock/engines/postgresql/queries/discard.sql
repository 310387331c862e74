-- $1: ids, $2: now.
select id from "penstock".discard_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))
