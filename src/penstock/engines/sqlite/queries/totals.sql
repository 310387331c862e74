-- $1: the name of the history's table. Counters only.
select message_id, coalesce((select seq from sqlite_sequence where name = $1), 0) from "penstock_state"
