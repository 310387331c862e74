-- $1: listener, $2: until.
update "penstock_listener" set until = $2,
    read_to = (select coalesce(max(number), 0) from "penstock_mail")
where id = $1
