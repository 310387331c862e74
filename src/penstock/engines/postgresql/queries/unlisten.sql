-- $1: listener, $2: now.
select CAST("penstock".unlisten_v1(CAST($1 AS bigint), CAST($2 AS timestamptz)) AS text)
