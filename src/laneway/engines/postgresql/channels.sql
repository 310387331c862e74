-- name: set_policy
-- $1: queue, $2: channels, $3..$7: concurrency, rate, burst, backlog, weight, one each; $8: now.
select CAST("laneway".set_policy_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS bigint[]), CAST($4 AS double precision[]),
    CAST($5 AS bigint[]), CAST($6 AS bigint[]), CAST($7 AS double precision[]),
    CAST($8 AS timestamptz)) AS text)

-- name: limit
-- $1: queue, $2: channel, $3: names of what changes, $4..$8: concurrency, rate, burst, backlog,
-- weight; $9: now.
select concurrency, rate, burst, backlog, weight, paused, closing, paused_until, throttled
from "laneway".limit_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text[]), CAST($4 AS bigint),
    CAST($5 AS double precision), CAST($6 AS bigint), CAST($7 AS bigint), CAST($8 AS double precision),
    CAST($9 AS timestamptz))

-- name: pause
-- $1: queue, $2: channels, $3: paused or resumed, $4: for how long, $5: now.
select CAST("laneway".pause_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS boolean), CAST($4 AS interval), CAST($5 AS timestamptz)) AS text)

-- name: throttle
-- $1: queue, $2: channel, $3: for how long, $4: now.
select CAST("laneway".throttle_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS interval), CAST($4 AS timestamptz)) AS text)

-- name: remove
-- $1: queue, $2: channels, $3: now.
select CAST("laneway".remove_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS timestamptz)) AS text)

-- name: policy
-- $1: queue, $2: channel.
select concurrency, rate, burst, backlog, weight, paused, closing,
    case when paused then paused_until end as paused_until, paused and throttled as throttled
from "laneway".channel_v1
where queue = CAST($1 AS text) and channel = CAST($2 AS text)
