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
