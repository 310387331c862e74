-- $1: rows. A plain list of values: its ids are consecutive, and no other publisher waits.
insert into `penstock_message` (channel_id, due, published_at, first_published_at, expires_at,
    key_window, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, payload)
values $1...
