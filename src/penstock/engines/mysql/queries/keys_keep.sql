-- $1: key ids in order, $2: message ids, $3: until when: they live on for their window.
update $1:keys x
straight_join `penstock_dedupe` t force index (primary) on t.id = unhex(x.id) and t.message_id in ($2...)
set t.expires_at = $3
