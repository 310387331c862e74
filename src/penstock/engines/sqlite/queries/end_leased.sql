-- $1: fence, $2: message ids, of which those end that are held under it.
delete from "penstock_message" where id in (
    select message_id from "penstock_lease"
    where fence = $1 and message_id in (select value from json_each($2)))
