-- name: key_owners
-- $1: rows of queue and key. Keys in use, with the messages or dead letters that have them.
select d.queue, d.key, d.message_id, d.expires_at, d.behind, d.behind_due,
    coalesce(c.name, x.channel), coalesce(m.kind, x.kind), x.id is not null, m.id is not null and w.message_id is null,
    m.channel_id, m.priority, m.due, m.published_at
from json_each($1) j cross join "laneway_dedupe" d
left join "laneway_message" m on m.id = d.message_id
left join "laneway_channel" c on c.id = m.channel_id
left join "laneway_waiting" w on w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
left join "laneway_dead" x on x.id = d.message_id
where d.queue = json_extract(j.value, '$[0]') and d.key = json_extract(j.value, '$[1]')

-- name: replace_message
-- $1: message, $2: priority, $3: due, $4: max_attempts, $5: content type, $6: payload, $7: expires_at,
-- $8: key_window, $9: headers. What was saved and counted belonged to what it was before.
update "laneway_message" set priority = $2, due = $3, max_attempts = $4, content_type = $5, payload = $6,
    expires_at = $7, key_window = $8, headers = $9, spent = 0, state = null, state_type = null
where id = $1

-- name: set_behind_due
-- $1: queue, $2: key, $3: when the message is due once it waits behind no other.
update "laneway_dedupe" set behind_due = $3 where queue = $1 and key = $2

-- name: park
-- $1: queue, $2: key, $3: the message that has the key now, behind the one that has it, $4: when it is due then.
update "laneway_dedupe" set behind = message_id, message_id = $3, behind_due = $4 where queue = $1 and key = $2

-- name: live_keys
-- $1: rows of queue and key, $2: now. Keys that are in use.
select d.queue, d.key, d.message_id
from json_each($1) j cross join "laneway_dedupe" d
where d.queue = json_extract(j.value, '$[0]') and d.key = json_extract(j.value, '$[1]')
    and (d.expires_at is null or d.expires_at > $2)

-- name: reserve_keys
-- $1: rows of queue, key and message id. Replaces keys that have expired.
insert into "laneway_dedupe" (queue, key, message_id)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
from json_each($1) where true
on conflict (queue, key) do update set message_id = excluded.message_id, expires_at = null

-- name: add_message
-- $1..$13: one message; first_published_at is published_at.
insert into "laneway_message" (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type,
    payload, expires_at, key, key_window, headers)
values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: add_plain_message
-- $1..$9: one message without expiry, key or headers.
insert into "laneway_message" (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type,
    payload)
values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)

-- name: add_waiting
-- $1 and $2: the first and the last id of this publish.
insert into "laneway_waiting" (channel_id, priority, due, message_id, expires_at)
select channel_id, priority, due, id, expires_at from "laneway_message" where id between $1 and $2

-- name: subscribe
-- $1: topic, $2: queue, $3: channel, $4: kind.
insert into "laneway_subscription" (topic, queue, channel, kind) values ($1, $2, $3, $4)
on conflict (topic, queue) do update set channel = excluded.channel, kind = excluded.kind

-- name: unsubscribe
-- $1: topic, $2: queue.
delete from "laneway_subscription" where topic = $1 and queue = $2 returning topic

-- name: subscriptions
-- $1: topic, null for all.
select topic, queue, channel, kind from "laneway_subscription"
where $1 is null or topic = $1 order by topic, queue
