-- $1: queue, $2: after which turn, $3: how many. The channels that may start something, in turn.
select id, turn, weight, concurrency, rate, burst, waiting, leased, bands, tat, credit, skips
from "penstock_channel"
where queue = $1 and turn > $2 order by turn limit $3
