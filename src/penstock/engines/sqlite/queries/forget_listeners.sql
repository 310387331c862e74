-- $1: now.
delete from "penstock_listener" where until <= $1
