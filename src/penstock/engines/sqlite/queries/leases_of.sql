-- $1: fence, $2: message ids. Those that are held under it.
select message_id, fence, channel_id, until from "penstock_lease"
where fence = $1 and message_id in (select value from json_each($2))
