-- One attempt of one task; times and lengths of time are microseconds. Null means the job's default.
create table {table} (
    place bigint primary key,
    payload {blob} not null,
    queue {text},
    channel {text},
    kind {text},
    content_type {text},
    headers {text},
    `key` {text},
    key_window bigint,
    priority bigint,
    delay bigint,
    `at` bigint,
    expires_in bigint,
    expires_at bigint,
    max_attempts bigint
)
