-- $1: queue, $2: key, $3: message id.
delete from "penstock_dedupe" where queue = $1 and key = $2 and message_id = $3
