-- name: create_staging
-- For one attempt of one task. Times and durations are in microseconds; null: the job's default.
create table $table:table (
    place bigint primary key,
    payload blob not null,
    queue text,
    channel text,
    kind text,
    content_type text,
    headers text,
    `key` text,
    key_scope text,
    key_window bigint,
    priority bigint,
    delay bigint,
    `at` bigint,
    expires_in bigint,
    expires_at bigint,
    max_attempts bigint
)

-- name: staging_tables
select name from sqlite_master where type = 'table' and substr(name, 1, length($start)) = $start
