-- name: set_shared_limit
-- $1: name, $2: names of what changes, $3..$5: concurrency, rate, burst; $6, $7: bounds to adapt between; $8..$11:
-- the breaker's failures, window, minimum, pause; $12: now.
select concurrency, rate, burst, adapt_min, adapt_max, adapted, failures, "window", minimum, pause, opened_at, open_until
from "laneway".set_shared_limit_v1(
    CAST($1 AS text), CAST($2 AS text[]), CAST($3 AS bigint), CAST($4 AS double precision), CAST($5 AS bigint),
    CAST($6 AS bigint), CAST($7 AS bigint), CAST($8 AS double precision), CAST($9 AS interval), CAST($10 AS bigint),
    CAST($11 AS interval), CAST($12 AS timestamptz))

-- name: note_limits
-- $1: names, $2: ids, $3: fences, $4: outcomes, $5: now.
select "laneway".note_limits_v1(
    CAST($1 AS text[]), CAST($2 AS bigint[]), CAST($3 AS bigint[]), CAST($4 AS smallint[]), CAST($5 AS timestamptz))

-- name: rest_shared_limit
-- $1: name, $2: for how long, $3: now.
select CAST("laneway".rest_shared_limit_v1(CAST($1 AS text), CAST($2 AS interval), CAST($3 AS timestamptz)) AS text)

-- name: remove_shared_limit
-- $1: name.
select "laneway".remove_shared_limit_v1(CAST($1 AS text))

-- name: shared_limits
-- $1: now.
select name, concurrency, rate, burst, rest_until, running, waiting, adapt_min, adapt_max, adapted, failures, "window",
    minimum, pause, opened_at, open_until, ended, failed
from "laneway".shared_limits_v1(p_now => CAST($1 AS timestamptz))

-- name: channels_behind_limits
-- $1: queue, $2: channels.
select channel, limits from "laneway".limited_channels_v1(CAST($1 AS text), CAST($2 AS text[]))
