-- $1: now, $2: how many.
select message_id from "penstock_waiting" where expires_at <= $1 order by expires_at limit $2
