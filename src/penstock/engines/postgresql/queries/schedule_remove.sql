-- $1: queue, $2: name.
delete from "penstock".schedule where queue = CAST($1 AS text) and name = CAST($2 AS text)
returning name
