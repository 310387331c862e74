-- $1: queue, $2: channels, $3: paused or resumed, $4: now.
select CAST("penstock".pause_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS boolean), CAST($4 AS timestamptz)) AS text)
