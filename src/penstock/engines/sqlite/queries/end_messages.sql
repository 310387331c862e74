-- $1: message ids.
delete from "penstock_message" where id in (select value from json_each($1))
