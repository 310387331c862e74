-- $1: now, $2: how many. Mail of listeners that are gone.
select m.number from `penstock_listener` l force index (listener_until)
join `penstock_mail` m force index (mail_order) on m.listener_id = l.id
where l.until <= $1 limit $2
