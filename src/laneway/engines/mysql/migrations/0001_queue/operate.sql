-- Pauses of queues and kinds, the audit, bulk operations on dead letters.

-- A queue, or one kind of it (kinds: null for all), that starts nothing until a time (null: until it
-- is resumed).
create table if not exists `laneway_pause` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    kind varbinary(255),
    until bigint,
    since bigint not null,
    actor varbinary(1020) not null,
    reason varbinary(4000) not null
) engine = InnoDB;

-- How many pauses there were. Whoever pauses locks the row and counts; a claim that starts something shares
-- a lock on it until its end, if the number is still that of its scan. So a pause waits for the claims
-- that have looked before it, and those that have not yet started anything look again.
insert ignore into `laneway_turnstile` (name) values ('pause');

-- Queues that are fair by time (docs/decisions/0023-fair-by-time.md); turnstile.fair counts them. turn: seconds of worker
-- time by which a channel may get ahead of others. reached: how many seconds every channel has had that could use
-- them, by weight; never falls.
create table if not exists `laneway_fair_queue` (
    queue varbinary(255) primary key,
    turn double not null,
    reached double not null default 0,
    since bigint not null
) engine = InnoDB;

-- A channel of such a queue that was claimed from; only a session that has locked the channel writes it. See
-- laneway.engines.fairness.RunTime.
create table if not exists `laneway_fair_channel` (
    channel_id binary(16) primary key,
    queue varbinary(255) not null,
    used double not null,
    booked double not null,
    cost double not null,
    since bigint not null,
    key fair_channel_order (queue, booked)
) engine = InnoDB;

-- What operators did, in the transaction in which they did it.
create table if not exists `laneway_audit` (
    id bigint auto_increment primary key,
    at bigint not null,
    actor varbinary(1020) not null,
    source varbinary(16) not null,
    action varbinary(64) not null,
    target longblob not null,
    affected bigint
) engine = InnoDB;

-- Bulk redrives and discards. died_at and letter are the position of the last dead letter that was
-- looked at; only letters that died until started_at are taken. running: 1, or null when it has ended.
create table if not exists `laneway_operation` (
    id bigint auto_increment primary key,
    action varbinary(16) not null,
    wanted longblob not null,
    options longblob not null,
    total bigint,
    done bigint not null default 0,
    state varbinary(16) not null default 'running',
    running tinyint default 1,
    actor varbinary(1020) not null,
    started_at bigint not null,
    ended_at bigint,
    error blob,
    died_at bigint,
    letter bigint,
    key operation_running (running, id)
) engine = InnoDB;

-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history call
-- it; several processes may share one. queues and kinds are JSON lists; no kinds: it handles every kind.
create table if not exists `laneway_worker` (
    id varbinary(255) primary key,
    name varbinary(255) not null,
    host varbinary(255) not null,
    pid bigint not null,
    version varbinary(255) not null,
    queues longblob not null,
    kinds longblob not null,
    slots bigint not null,
    used bigint not null,
    stopping boolean not null,
    started_at bigint not null,
    seen_at bigint not null,
    key worker_seen (seen_at)
) engine = InnoDB row_format = dynamic;

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the next
-- holder has another fence. Upkeep deletes what has no lease.
create table if not exists `laneway_cancel_request` (
    message_id bigint not null,
    fence bigint not null,
    worker varbinary(255) not null,
    requested_at bigint not null,
    primary key (message_id, fence),
    key cancel_request_worker (worker)
) engine = InnoDB;

-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create or replace view `laneway_worker_v1` as
select convert(w.id using utf8mb4) collate utf8mb4_bin as id, convert(w.name using utf8mb4) collate utf8mb4_bin as name,
    convert(w.host using utf8mb4) collate utf8mb4_bin as host, w.pid, convert(w.version using utf8mb4) collate utf8mb4_bin as version,
    convert(w.queues using utf8mb4) collate utf8mb4_bin as queues, convert(w.kinds using utf8mb4) collate utf8mb4_bin as kinds,
    w.slots, w.used, timestampadd(microsecond, w.started_at, timestamp '1970-01-01 00:00:00') as started_at,
    timestampadd(microsecond, w.seen_at, timestamp '1970-01-01 00:00:00') as seen_at,
    case when w.seen_at < timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - 30000000
        then 'vanished' when w.stopping then 'stopping' else 'running' end as state
from `laneway_worker` w;

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

-- The lake's catalog: which part of the history is in which files, and how far that was verified. A
-- batch is a range of (settled, id). States: planned -> written -> verified -> purged.
create table if not exists `laneway_lake_commit` (
    lake varbinary(255) not null,
    batch bigint not null,
    from_xid bigint not null,
    from_id bigint not null,
    to_xid bigint not null,
    to_id bigint not null,
    `rows` bigint not null,
    checksum varbinary(40) not null,
    first_ended_at bigint not null,
    last_ended_at bigint not null,
    state varbinary(16) not null,
    planned_at bigint not null,
    primary key (lake, batch),
    key lake_commit_open (lake, state, from_xid)
) engine = InnoDB;

-- One row per file; batches and replaces are JSON lists. While staged is set, the file is at that path,
-- and the files that it replaces may still exist.
create table if not exists `laneway_lake_file` (
    lake varbinary(255) not null,
    path varbinary(512) not null,
    day bigint not null,
    batches longblob not null,
    `rows` bigint not null,
    checksum varbinary(40) not null,
    size bigint not null,
    staged varbinary(512),
    replaces longblob,
    primary key (lake, path)
) engine = InnoDB row_format = dynamic;
