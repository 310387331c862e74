-- name: make_due
-- $1: message ids, $2: now.
update "laneway_message" set due = $2 where id in (select value from json_each($1))

-- name: behind_others
-- $1: message ids. Those that wait behind a running message of their key, and stay there.
select m.id from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_dedupe" d
where m.id = j.value and m.key is not null and c.id = m.channel_id and d.queue = c.queue and d.key = m.key
    and d.message_id = m.id and d.behind is not null
