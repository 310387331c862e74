-- $1: channel, $2: priority, $3: now, $4: how many. The first of them in the order of their start.
select priority, due, message_id from "penstock_waiting"
where channel_id = $1 and priority = $2 and due <= $3 and (expires_at is null or expires_at > $3)
order by due, message_id limit $4
