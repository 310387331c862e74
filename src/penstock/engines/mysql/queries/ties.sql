-- $1: message ids, locked by us. What their end must tell: the channel's slot and the key.
select l.message_id, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window
from $1:ids x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id
straight_join `penstock_message` m force index (primary) on m.id = x.id
for update
