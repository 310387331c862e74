-- name: queue_stats
-- $1: the most rows to read of a table, $2: now. All queues that have messages.
select queue, waiting, scheduled, leased, dead, channels, oldest, exact, as_of
from "laneway".look_queue_stats_v1(CAST($1 AS integer), CAST($2 AS timestamptz))

-- name: channels
-- $1: queue, $2: prefix, $3: paused, $4: limited; null matches all. $5: limit, $6: the most rows to read of a table,
-- $7 to $9: waiting, queue and name of the last one seen, $10: now. The fullest first.
select complete, looked, queue, channel, waiting, scheduled, leased, dead, oldest, exact, concurrency, rate, burst,
    backlog, weight, paused, closing, paused_until, throttled, waits_for
from "laneway".look_channels_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS boolean), CAST($4 AS boolean), CAST($5 AS integer),
    CAST($6 AS integer), CAST($7 AS bigint), CAST($8 AS text), CAST($9 AS text), CAST($10 AS timestamptz))

-- name: channel_names
-- $1: queue, $2: prefix, $3: paused, $4: limited; null matches all. $5 and $6: queue and name of the last one seen,
-- $7: limit, $8: the most rows to read.
select queues, names, looked, last_queue, last_channel
from "laneway".channel_names_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS boolean), CAST($4 AS boolean), CAST($5 AS text), CAST($6 AS text),
    CAST($7 AS integer), CAST($8 AS integer))

-- name: channels_named
-- $1: queues and $2: names of channels, one for one; $3: the most messages to count of each, $4: now.
select queue, channel, waiting, scheduled, leased, dead, oldest, exact, concurrency, rate, burst, backlog, weight,
    paused, closing, paused_until, throttled, waits_for
from "laneway".look_named_v1(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS integer), CAST($4 AS timestamptz))

-- name: queue_names
select "laneway".look_queues_v1(1000, true)

-- name: minutes
-- $1: queue, $2: kind; null matches all. $3: since, $4: until, $5: step, $6: queue or kind, null adds all up. $7: whether waits and runs.
select at, queue, kind, published, started, completed, retried, failed, expired, deferred, given_back, cancelled, lapsed,
    redriven, discarded, dead, waits, runs, depth, oldest, exact
from "laneway".minutes_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS timestamptz), CAST($4 AS timestamptz), CAST($5 AS interval),
    CAST($6 AS text), CAST($7 AS boolean))
