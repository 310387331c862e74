-- Intervals are in microseconds.
create or replace view `laneway_schedule_v1` as
select convert(s.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(s.name using utf8mb4) collate utf8mb4_bin as name,
    convert(s.cron using utf8mb4) as cron, s.every, convert(s.zone using utf8mb4) as zone,
    timestampadd(microsecond, s.start, timestamp '1970-01-01 00:00:00') as start,
    convert(s.catch_up using utf8mb4) as catch_up, s.grace,
    convert(s.topic using utf8mb4) collate utf8mb4_bin as topic,
    convert(s.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(s.kind using utf8mb4) collate utf8mb4_bin as kind,
    convert(s.`key` using utf8mb4) collate utf8mb4_bin as `key`, s.key_window, s.priority,
    convert(s.headers using utf8mb4) as headers, convert(s.content_type using utf8mb4) as content_type,
    s.payload, s.expires_in, s.max_attempts,
    timestampadd(microsecond, s.anchor, timestamp '1970-01-01 00:00:00') as anchor, s.paused,
    timestampadd(microsecond, s.next_at, timestamp '1970-01-01 00:00:00') as next_at,
    timestampadd(microsecond, s.look_at, timestamp '1970-01-01 00:00:00') as look_at,
    timestampadd(microsecond, s.last_at, timestamp '1970-01-01 00:00:00') as last_at,
    s.fired, convert(s.error using utf8mb4) as error, s.revision
from `laneway_schedule` s;
