-- $1: listener, $2: limit.
select number, at, what, events from `penstock_mail` force index (mail_order)
where listener_id = $1 order by number limit $2
