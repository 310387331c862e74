-- $1: listener, $2: the last number that was read.
delete from "penstock_mail" where listener_id = $1 and number <= $2
