-- $1: ids.
select m.id, m.queue, m.channel, m.kind
from $1:ids x straight_join `penstock_message` m force index (primary) on m.id = x.id
