-- name: create_staging
-- For one attempt of one task. Times and durations are in microseconds; null: the job's default.
create table $table:table (
    place bigint primary key,
    payload longblob not null,
    queue longtext character set utf8mb4,
    channel longtext character set utf8mb4,
    kind longtext character set utf8mb4,
    content_type longtext character set utf8mb4,
    headers longtext character set utf8mb4,
    `key` longtext character set utf8mb4,
    key_scope text character set utf8mb4,
    key_window bigint,
    priority bigint,
    delay bigint,
    `at` bigint,
    expires_in bigint,
    expires_at bigint,
    max_attempts bigint
)

-- name: staging_tables
select table_name from information_schema.tables
where table_schema = database() and left(table_name, char_length($start)) = $start
