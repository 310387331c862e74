-- $1: how long ago a lease must have run out, $2: now. Upkeep takes them back within seconds.
select count(*) as expired, min(until) as since
from (
    select until from "penstock".message_v1
    where until < coalesce(CAST($2 AS timestamptz), clock_timestamp()) - CAST($1 AS interval)
    order by until limit 1000
) l
