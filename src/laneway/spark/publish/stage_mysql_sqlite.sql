-- Bulk publish on MySQL, MariaDB and SQLite: the rows of staging tables.

-- name: fill_staging
insert into $table:table (place, payload, queue, channel, kind, content_type, headers, `key`, key_scope, key_window, priority, delay,
    `at`, expires_in, expires_at, max_attempts)
values ($place, $payload, $queue, $channel, $kind, $content_type, $headers, $key, $key_scope, $key_window, $priority, $delay,
    $at, $expires_in, $expires_at, $max_attempts)

-- name: staged_rows
-- The next rows of a staging table, in the order in which the task wrote them.
select s.place, s.payload, s.queue, s.channel, s.kind, s.content_type, s.headers, s.`key`, s.key_scope, s.key_window, s.priority, s.delay,
    s.`at`, s.expires_in, s.expires_at, s.max_attempts
from $table:table s
where s.place > $after order by s.place limit $rows

-- name: drop_staged
drop table if exists $table:name
