-- $1: queue, $2: key, $3: how long to remember it, $4: now.
select "penstock".once_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS interval), CAST($4 AS timestamptz))
