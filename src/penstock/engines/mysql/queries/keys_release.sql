-- $1: key ids in order, $2: message ids: free again.
delete from `penstock_dedupe` where id in ($1...) and message_id in ($2...)
