-- Of listeners that are gone.
delete from "penstock_mail" where listener_id not in (select id from "penstock_listener")
returning number
