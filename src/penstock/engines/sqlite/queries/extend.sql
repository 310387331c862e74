-- $1: message, $2: fence, $3: until. Never shortens.
update "penstock_lease" set until = max(until, $3) where fence = $2 and message_id = $1
