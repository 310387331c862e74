-- $1: until when, $2: key ids in order, $3: message ids: they live on for their window.
update `penstock_dedupe` set expires_at = $1 where id in ($2...) and message_id in ($3...)
