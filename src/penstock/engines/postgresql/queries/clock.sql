-- $1: now.
select coalesce(CAST($1 AS timestamptz), clock_timestamp())
