-- $1: topic, null for all.
select topic, queue, channel, kind
from "penstock".subscription_v1
where CAST($1 AS text) is null or topic = CAST($1 AS text)
order by topic, queue
