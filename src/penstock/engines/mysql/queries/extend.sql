-- $1: until, $2: message ids. Never shortens.
update `penstock_lease` set until = greatest(until, $1) where message_id in ($2...)
