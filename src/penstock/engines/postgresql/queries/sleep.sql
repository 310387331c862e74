-- $1: queues, $2: worker, $3: length, null to be awake, $4: now.
select CAST("penstock".sleep_v1(
    CAST($1 AS text[]), CAST($2 AS text), CAST($3 AS interval), CAST($4 AS timestamptz)) AS text)
