-- $1..$9: one message without expiry, key and headers.
insert into "penstock_message" (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type,
    payload)
values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)
