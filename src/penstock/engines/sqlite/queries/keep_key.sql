-- $1: queue, $2: key, $3: message id, $4: until when.
update "penstock_dedupe" set expires_at = $4 where queue = $1 and key = $2 and message_id = $3
