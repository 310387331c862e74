-- $1: queue, $2: paused; null matches all. $3: limit. The fullest first.
select a.queue, a.channel, coalesce(n.waiting, 0), coalesce(n.scheduled, 0), coalesce(n.leased, 0),
    coalesce(n.dead, 0), n.oldest_due, c.concurrency, c.rate, c.burst, c.backlog, coalesce(c.weight, 1),
    coalesce(c.paused, 0), coalesce(c.closing, 0)
from (
    select queue, channel from `penstock_numbers` where $1 is null or queue = $1
    union
    select queue, name from `penstock_channel`
    where ($1 is null or queue = $1)
        and (concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused or closing)
) a
left join `penstock_numbers` n on n.queue = a.queue and n.channel = a.channel
left join `penstock_channel` c on c.id =
    unhex(substr(sha2(concat(octet_length(a.queue), ':', a.queue, a.channel), 256), 1, 32))
where $2 is null or coalesce(c.paused, 0) = $2
order by 3 desc, a.queue, a.channel limit $3
