-- $1: topic, $2: queue.
delete from "penstock".subscription where topic = CAST($1 AS text) and queue = CAST($2 AS text)
returning topic
