-- name: make_due
-- $1: message ids, $2: now. We have locked their channels.
update $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id set m.due = $2

-- name: behind_others
-- $1: message ids. Those that wait behind a running message of their key, and stay there.
select m.id from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
straight_join `laneway_dedupe` t force index (primary)
    on t.id = unhex(substr(sha2(concat(octet_length(m.queue), ':', m.queue, m.`key`), 256), 1, 32))
where t.message_id = m.id and t.behind is not null
