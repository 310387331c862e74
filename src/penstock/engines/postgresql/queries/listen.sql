-- $1..$4: the columns of EventFilter, null for all; $5: for how long, $6: now.
select "penstock".listen_v1(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]),
    CAST($5 AS interval), CAST($6 AS timestamptz))
