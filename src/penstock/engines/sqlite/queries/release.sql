-- $1: fence, $2: message ids.
delete from "penstock_lease"
where fence = $1 and message_id in (select value from json_each($2))
