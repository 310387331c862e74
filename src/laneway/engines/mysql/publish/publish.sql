-- name: publish_state
-- $1: now. Columns: the time, the largest statement that the server accepts, the step of its ids,
-- whether any channel refuses messages, whether anybody listens to events, how many queues are claimed by kind.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    @@max_allowed_packet, @@auto_increment_increment,
    exists (select 1 from `laneway_channel` where gated = 1),
    exists (select 1 from `laneway_listener` where until > coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))),
    (select by_kind from `laneway_turnstile` force index (primary) where name = 'pause')

-- name: refusing_channels
-- $1: channel ids. Those that refuse messages: all (closing), or more than a backlog.
select id, closing, backlog from `laneway_channel` where gated = 1 and id in ($1...)

-- name: count_backlog
-- $1: channel id, $2: backlog. Counts no further than that. (Without the alias the id would be the column's
-- name, which drivers decode as text.)
select $1 as id, count(*) as n from (
    select 1 from `laneway_message` force index (message_order) where channel_id = $1 limit $2) m

-- name: add_messages
-- $1: rows. A plain list of values: its ids are consecutive, and no other publisher waits.
insert into `laneway_message` (channel_id, due, published_at, first_published_at, expires_at,
    key_window, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, payload)
values $1...

-- name: add_wakes
-- $1: rows.
insert into `laneway_wake` (at, channel_id, due, message_id, n, freed, priority, ahead, queue, channel)
values $1...

-- name: add_kind_wakes
-- $1: rows.
insert into `laneway_kind_wake` (at, channel_id, due, message_id, n, priority, ahead, queue, channel, lane)
values $1...

-- name: add_expiries
-- $1: rows.
insert into `laneway_expiry` (message_id, expires_at) values $1...

-- name: subscribe
-- $1: topic, queue, channel and kind, as one row.
insert into `laneway_subscription` (topic, queue, channel, kind) values $1...
on duplicate key update channel = values(channel), kind = values(kind)

-- name: lock_subscription
-- $1: topic, $2: queue.
select 1 from `laneway_subscription` where topic = $1 and queue = $2 for update

-- name: unsubscribe
-- $1: topic, $2: queue.
delete from `laneway_subscription` where topic = $1 and queue = $2

-- name: subscriptions
-- $1: topic, null for all.
select topic, queue, channel, kind from `laneway_subscription`
where $1 is null or topic = $1 order by topic, queue
