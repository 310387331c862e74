-- What a claim takes of a channel in one priority is always the first of what may start.
-- $1: channel, $2: priority, $3 and $4: due and id of the last one, $5: now.
delete from "penstock_waiting"
where channel_id = $1 and priority = $2 and (due, message_id) <= ($3, $4)
    and (expires_at is null or expires_at > $5)
