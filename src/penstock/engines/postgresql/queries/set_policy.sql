-- $1: queue, $2: channels, $3..$7: concurrency, rate, burst, backlog, weight, one each; $8: now.
select CAST("penstock".set_policy_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS bigint[]), CAST($4 AS double precision[]),
    CAST($5 AS bigint[]), CAST($6 AS bigint[]), CAST($7 AS double precision[]),
    CAST($8 AS timestamptz)) AS text)
