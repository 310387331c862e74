-- $1: message ids of channels that we own, $2: fence, $3: until, $4: now, $5: worker.
insert into `penstock_lease` (message_id, fence, until, claimed_at, channel_id, counted, worker)
select m.id, $2, $3, $4, m.channel_id, c.concurrency is not null, $5
from $1:ids x
straight_join `penstock_message` m force index (primary) on m.id = x.id
straight_join `penstock_channel` c force index (primary) on c.id = m.channel_id
