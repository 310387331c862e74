-- $1 and $2: the first and the last id of a publish.
insert into "penstock_waiting" (channel_id, priority, due, message_id, expires_at)
select channel_id, priority, due, id, expires_at from "penstock_message" where id between $1 and $2
