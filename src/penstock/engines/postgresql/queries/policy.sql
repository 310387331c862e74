-- $1: queue, $2: channel.
select concurrency, rate, burst, backlog, weight, paused, closing
from "penstock".channel_v1
where queue = CAST($1 AS text) and channel = CAST($2 AS text)
