-- name: make_due
-- $1: message ids, $2: now.
update "laneway_message" set due = $2 where id in (select value from json_each($1))
