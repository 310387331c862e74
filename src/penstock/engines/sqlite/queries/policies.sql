-- $1: queue, null for all. Channels whose policy is not the default one.
select queue, name, concurrency, rate, burst, backlog, weight, paused, closing
from "penstock_channel"
where ($1 is null or queue = $1)
    and (concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused
        or closing)
