-- $1: queue, $2: channel, null for all; $3: limit. The fullest first.
select queue, channel, waiting, scheduled, leased, dead,
    case when isfinite(oldest_due) then oldest_due end
from "penstock".channel_numbers_v1
where (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (CAST($2 AS text) is null or channel = CAST($2 AS text))
order by waiting desc, queue, channel
limit CAST($3 AS integer)
