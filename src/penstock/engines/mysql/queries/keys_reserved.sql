-- $1: key ids, all locked by us already.
select t.id, t.message_id, t.expires_at
from $1:keys x straight_join `penstock_dedupe` t force index (primary) on t.id = unhex(x.id)
for update
