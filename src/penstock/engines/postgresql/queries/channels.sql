-- $1: queue, $2: paused; null matches all. $3: limit. The fullest first.
select queue, channel, coalesce(n.waiting, 0) as waiting, coalesce(n.scheduled, 0) as scheduled,
    coalesce(n.leased, 0) as leased, coalesce(n.dead, 0) as dead,
    case when isfinite(n.oldest_due) then n.oldest_due end,
    c.concurrency, c.rate, c.burst, c.backlog, coalesce(c.weight, 1) as weight,
    coalesce(c.paused, false) as paused, coalesce(c.closing, false) as closing
from (
    select * from "penstock".channel_numbers_v1
    where CAST($1 AS text) is null or queue = CAST($1 AS text)
) n
full join (
    select * from "penstock".channel_v1
    where CAST($1 AS text) is null or queue = CAST($1 AS text)
) c using (queue, channel)
where (n.waiting is not null or c.concurrency is not null or c.rate is not null
        or c.backlog is not null or c.weight <> 1 or c.paused or c.closing)
    and (CAST($2 AS boolean) is null or coalesce(c.paused, false) = CAST($2 AS boolean))
order by 3 desc, queue, channel
limit CAST($3 AS integer)
