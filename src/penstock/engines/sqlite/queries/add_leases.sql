-- $1: channel, $2: priority, $3 and $4: due and id of the last one, $5: now, $6: fence, $7: until.
insert into "penstock_lease" (fence, message_id, channel_id, until)
select $6, message_id, channel_id, $7 from "penstock_waiting"
where channel_id = $1 and priority = $2 and (due, message_id) <= ($3, $4)
    and (expires_at is null or expires_at > $5)
