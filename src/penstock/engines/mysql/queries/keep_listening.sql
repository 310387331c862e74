-- $1: until, $2: listener.
update `penstock_listener` set until = $1,
    read_to = coalesce((select max(number) from `penstock_mail`), 0)
where id = $2
