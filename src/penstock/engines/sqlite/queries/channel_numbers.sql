-- $1: queue, $2: channel, null for all; $3: limit, $4: now. The fullest first.
select queue, channel, sum(waiting) as waiting, sum(scheduled) as scheduled, sum(leased) as leased,
    sum(dead) as dead, min(oldest) as oldest_due
from (
    select c.queue, c.name as channel, c.waiting - c.later as waiting, c.later as scheduled, c.leased,
        0 as dead, case when c.waiting > c.later then c.oldest end as oldest
    from (
        select c.queue, c.name, c.waiting, c.leased,
            (select count(*) from "penstock_waiting" w
                where w.channel_id = c.id and w.priority in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
                    and w.due > $4) as later,
            (select min((select w.due from "penstock_waiting" w
                where w.channel_id = c.id and w.priority = p.value order by w.due limit 1))
                from json_each('[0,1,2,3,4,5,6,7,8,9]') p where (c.bands >> p.value) & 1) as oldest
        from "penstock_channel" c
        where (c.waiting > 0 or c.leased > 0)
            and ($1 is null or c.queue = $1) and ($2 is null or c.name = $2)
    ) c
    union all
    select queue, channel, 0, 0, 0, n, null from "penstock_dead_count"
    where n <> 0 and ($1 is null or queue = $1) and ($2 is null or channel = $2)
)
group by queue, channel
order by waiting desc, queue, channel
limit $3
