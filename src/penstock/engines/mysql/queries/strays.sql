select s.message_id, s.fence, s.channel_id, s.queue, s.channel, l.message_id is not null
from `penstock_stray` s left join `penstock_lease` l on l.message_id = s.message_id and l.fence = s.fence
limit 1000
