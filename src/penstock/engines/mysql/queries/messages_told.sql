-- $1: ids. A locking read, so that a caller's old snapshot hides none of them: they are ours already, but for
-- what a claim has just leased, which nobody else writes to.
select m.id, m.queue, m.channel, m.kind
from $1:ids x straight_join `penstock_message` m force index (primary) on m.id = x.id
lock in share mode
