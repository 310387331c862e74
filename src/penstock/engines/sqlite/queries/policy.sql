-- $1: queue, $2: channel.
select concurrency, rate, burst, backlog, weight, paused, closing
from "penstock_channel" where queue = $1 and name = $2
