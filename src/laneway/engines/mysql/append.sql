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

-- name: add_kind_wakes
-- $1: rows.
insert into `laneway_kind_wake` (at, channel_id, due, message_id, n, priority, ahead, queue, channel, lane)
values $1...
