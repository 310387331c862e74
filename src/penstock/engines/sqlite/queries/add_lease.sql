-- $1: fence, $2: message, $3: channel, $4: until.
insert into "penstock_lease" (fence, message_id, channel_id, until) values ($1, $2, $3, $4)
