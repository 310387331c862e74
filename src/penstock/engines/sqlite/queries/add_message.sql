-- $1..$13: one message; published_at is the first publish too.
insert into "penstock_message" (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type,
    payload, expires_at, key, key_window, headers)
values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10, $11, $12, $13)
