-- $1: message ids.
delete from "penstock_message" where id in (select value from json_each($1))
returning id, channel_id, key, key_window,
    case when key is not null then (
        select c.queue from "penstock_channel" c where c.id = channel_id) end
