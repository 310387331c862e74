-- $1: listener.
delete from "penstock_listener" where id = $1
