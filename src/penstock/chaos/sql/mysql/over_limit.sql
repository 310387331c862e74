-- One snapshot: channels with more leases than their policy allows; leases that ran out count.
select c.queue, c.channel, count(*), c.concurrency
from penstock_chaos_message_v1 m
join penstock_chaos_channel_v1 c on c.queue = m.queue and c.channel = m.channel
where m.state = 'leased'
group by c.queue, c.channel, c.concurrency
having count(*) > c.concurrency
