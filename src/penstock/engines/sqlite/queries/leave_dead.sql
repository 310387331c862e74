-- $1: ids.
delete from "penstock_dead" where id in (select value from json_each($1))
returning id, queue, key, key_window
