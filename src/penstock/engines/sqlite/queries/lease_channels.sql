-- $1: fence, $2: message ids. How many of them are held under it, by channel.
select channel_id, count(*) from "penstock_lease"
where fence = $1 and message_id in (select value from json_each($2)) group by channel_id
