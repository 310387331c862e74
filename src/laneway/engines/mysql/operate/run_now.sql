-- name: make_due
-- $1: message ids, $2: now. We have locked their channels.
update $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id set m.due = $2
