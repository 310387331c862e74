-- One snapshot: channels with more leases than their policy allows; leases that ran out count.
select c.queue, c.name, count(*), c.concurrency
from "penstock_chaos".lease l join "penstock_chaos".channel c on c.id = l.channel_id
group by c.id
having count(*) > c.concurrency
