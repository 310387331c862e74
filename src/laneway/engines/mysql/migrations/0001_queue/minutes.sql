-- Figures per minute, and counts that upkeep keeps up to date. Only upkeep writes to these tables,
-- one session at a time, and moves its positions in the transaction that adds what lies before them.

-- One row: how far upkeep has counted.
--   settled, history_id  position in the history, the same as a reader of history_since has
--   message_id   up to which id published messages were counted, except for the ids in gap
--   seen, stamp, seen_at  the highest message id and the last stamp when an upkeep ended, and when that
--                was. The next one counts so far: whatever ended by then was published by then.
--   known        whether kind_count is right: it is not after a time without a full history
--   counted_at   as of when kind_count is
--   noted        the last minute whose depth was noted
create table if not exists `laneway_fold` (
    single tinyint primary key,
    settled bigint not null,
    history_id bigint not null,
    message_id bigint not null,
    seen bigint not null,
    stamp bigint not null,
    seen_at bigint not null default 0,
    known boolean not null,
    counted_at bigint,
    noted bigint not null default 0
) engine = InnoDB;
-- If an install was interrupted, there may be messages already.
insert ignore into `laneway_fold` (single, settled, history_id, message_id, seen, stamp, known)
select 1, s.n + 1, 0, m.last, m.last, s.n, m.last = 0
from (select greatest(
    coalesce((select max(id) from `laneway_message`), 0), coalesce((select max(id) from `laneway_dead`), 0),
    coalesce((select max(message_id) from `laneway_history`), 0)) as last) m
cross join `laneway_turnstile` s where s.name = 'settle';

-- Ids up to fold.message_id that were not found when their turn came: of transactions that were still
-- open, or that were rolled back. Upkeep looks again, later each time, for a day.
create table if not exists `laneway_gap` (
    first_id bigint primary key,
    last_id bigint not null,
    noted_at bigint not null,
    check_at bigint not null,
    key gap_check (check_at)
) engine = InnoDB;

-- How many messages have not ended, and how many of them are dead letters.
create table if not exists `laneway_kind_count` (
    queue varbinary(255) not null,
    kind varbinary(255) not null,
    live bigint not null default 0,
    dead bigint not null default 0,
    primary key (queue, kind)
) engine = InnoDB;

-- What happened, by minute (at: minutes since 1970) and by hour (at: of its first minute; span: 60).
-- w0 to w12 and r0 to r12 count times of waiting and running by the buckets of
-- laneway.operations.WAIT_BOUNDS. partial: the history was not fully kept. depth and oldest_due are
-- those at the end; oldest_due is the queue's.
create table if not exists `laneway_minute` (
    span smallint not null,
    at bigint not null,
    queue varbinary(255) not null,
    kind varbinary(255) not null,
    published bigint not null default 0,
    started bigint not null default 0,
    completed bigint not null default 0,
    retried bigint not null default 0,
    failed bigint not null default 0,
    expired bigint not null default 0,
    deferred bigint not null default 0,
    given_back bigint not null default 0,
    cancelled bigint not null default 0,
    lapsed bigint not null default 0,
    redriven bigint not null default 0,
    discarded bigint not null default 0,
    dead bigint not null default 0,
    w0 bigint not null default 0,
    w1 bigint not null default 0,
    w2 bigint not null default 0,
    w3 bigint not null default 0,
    w4 bigint not null default 0,
    w5 bigint not null default 0,
    w6 bigint not null default 0,
    w7 bigint not null default 0,
    w8 bigint not null default 0,
    w9 bigint not null default 0,
    w10 bigint not null default 0,
    w11 bigint not null default 0,
    w12 bigint not null default 0,
    r0 bigint not null default 0,
    r1 bigint not null default 0,
    r2 bigint not null default 0,
    r3 bigint not null default 0,
    r4 bigint not null default 0,
    r5 bigint not null default 0,
    r6 bigint not null default 0,
    r7 bigint not null default 0,
    r8 bigint not null default 0,
    r9 bigint not null default 0,
    r10 bigint not null default 0,
    r11 bigint not null default 0,
    r12 bigint not null default 0,
    depth bigint,
    oldest_due bigint,
    partial boolean not null default false,
    primary key (span, at, queue, kind)
) engine = InnoDB;

-- The sums of dead_count rows that upkeep has added up: by channel, and by queue.
create table if not exists `laneway_dead_sum` (
    channel_id binary(16) primary key,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    n bigint not null,
    key dead_sum_queue (queue)
) engine = InnoDB;
create table if not exists `laneway_dead_queue` (
    queue varbinary(255) primary key,
    n bigint not null
) engine = InnoDB;

-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
-- waits and runs are JSON arrays.
create or replace view `laneway_minute_v1` as
select timestampadd(minute, m.at, timestamp '1970-01-01 00:00:00') as at,
    convert(m.queue using utf8mb4) collate utf8mb4_bin as queue, convert(m.kind using utf8mb4) collate utf8mb4_bin as kind,
    m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred, m.given_back, m.cancelled,
    m.lapsed, m.redriven, m.discarded, m.dead,
    json_array(m.w0, m.w1, m.w2, m.w3, m.w4, m.w5, m.w6, m.w7, m.w8, m.w9, m.w10, m.w11, m.w12) as waits,
    json_array(m.r0, m.r1, m.r2, m.r3, m.r4, m.r5, m.r6, m.r7, m.r8, m.r9, m.r10, m.r11, m.r12) as runs,
    m.depth, timestampadd(microsecond, m.oldest_due, timestamp '1970-01-01 00:00:00') as oldest,
    not m.partial as exact
from `laneway_minute` m where m.span = 1;
