-- $1: channel, $2: priority, $3: due, $4: message.
delete from "penstock_waiting"
where channel_id = $1 and priority = $2 and due = $3 and message_id = $4
