-- $1: queue, $2: channels, $3: now.
select CAST("penstock".remove_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS timestamptz)) AS text)
