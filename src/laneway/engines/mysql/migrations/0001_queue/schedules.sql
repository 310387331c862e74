-- Schedules: messages that repeat. One row each, rewritten at every tick.
--
-- next_at is the next tick. look_at is when the row has to be looked at: at the tick, a little later
-- after an error, null while paused. Whoever fires a schedule holds the lock on its row from reading
-- the tick to writing the next one, in the transaction that publishes, so a tick fires once.
-- revision is a number that was never used before, so that a schedule which was removed and created
-- again is a different one.
create table if not exists `laneway_schedule` (
    queue varbinary(255) not null,
    name varbinary(255) not null,
    cron varbinary(1024),
    every bigint,
    zone varbinary(255) not null,
    start bigint,
    catch_up varbinary(8) not null,
    grace bigint not null,
    topic varbinary(255),
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    `key` varbinary(255),
    key_window bigint,
    priority smallint not null,
    headers longblob,
    content_type varbinary(1024) not null,
    payload longblob not null,
    expires_in bigint,
    max_attempts int not null,
    anchor bigint not null,
    paused boolean not null,
    next_at bigint not null,
    look_at bigint,
    last_at bigint,
    fired bigint not null,
    error longblob,
    revision bigint not null,
    primary key (queue, name),
    key schedule_look (look_at)
) engine = InnoDB row_format = dynamic;

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
