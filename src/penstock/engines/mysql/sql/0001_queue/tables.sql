-- The private tables. People, reports and Spark read the views (views.sql).
--
-- Times are microseconds since 1970 in UTC, so that no session's time zone changes them. Names are
-- bytes of UTF-8: equal only if they are the same to the last byte, trailing spaces included. No
-- foreign keys and no unique index but primary keys: what those lock, others would wait for.
--
--   still     one row per thing: channel, setting, dedupe, dead.
--   flowing   rows are appended and deleted: message, wake, lease, history. Each is found by a
--             position that only moves to the right, so that deleted entries which an old snapshot
--             keeps from being purged stay behind and are not read.
--
-- Every statement can be repeated: MySQL commits each of them by itself.

create table if not exists `penstock_migration` (
    number int primary key,
    name varchar(64) not null,
    applied_at bigint not null
) engine = InnoDB default charset = utf8mb4;

-- One row: what holds for the whole schema.
create table if not exists `penstock_setting` (
    single tinyint primary key,
    history varbinary(8) not null default 'all',
    history_days int not null default 30,
    backoff_first bigint not null default 1000000,
    backoff_most bigint not null default 300000000
) engine = InnoDB;
insert ignore into `penstock_setting` (single) values (1);

-- What only one may do at a time holds its row's lock: 'upkeep', and 'settle' (stamping the
-- history; n is the last stamp).
create table if not exists `penstock_turnstile` (
    name varbinary(16) primary key,
    n bigint not null default 0
) engine = InnoDB;
insert ignore into `penstock_turnstile` (name) values ('upkeep'), ('settle');

-- One number a claim. The counter is never rolled back; upkeep deletes the rows.
create table if not exists `penstock_fence` (
    id bigint auto_increment primary key
) engine = InnoDB;

-- One row per channel: its names, its policy, and its schedule. Claims create it, publishing never
-- does (an open producer would make others wait). Whoever holds the row's lock owns the schedule.
-- The id is computed from the two names, so that a publisher needs no look-up.
--   gated    1 if a publisher must know about it (a backlog limit, or closing), else null
--   turn     when its turn came (in the ring), when its rate allows the next start (future), far
--            in the future (parked with work until a wake), or null (no known work)
--   n        waiting messages, less those that unread wakes count
--   leased   leases charged to its concurrency, less what unread wakes have freed
--   places   for each priority that has known work, the position after which it lies
create table if not exists `penstock_channel` (
    id binary(16) primary key,
    queue varbinary(255) not null,
    name varbinary(255) not null,
    created_at bigint not null default (timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    weight double not null default 1,
    concurrency bigint,
    rate double,
    burst bigint,
    backlog bigint,
    paused boolean not null default false,
    closing boolean not null default false,
    gated tinyint,
    turn bigint,
    n bigint not null default 0,
    leased bigint not null default 0,
    tat bigint,
    credit double not null default 0,
    skips bigint not null default 0,
    oldest bigint,
    places varbinary(1000) not null default '',
    key channel_ring (queue, turn),
    key channel_gate (gated)
) engine = InnoDB;

create table if not exists `penstock_message` (
    id bigint auto_increment primary key,
    channel_id binary(16) not null,
    due bigint not null,
    published_at bigint not null,
    first_published_at bigint not null,
    expires_at bigint,
    key_window bigint,
    attempt bigint not null default 0,
    spent int not null default 0,
    max_attempts int not null,
    priority tinyint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    `key` varbinary(255),
    content_type varbinary(1024) not null,
    headers longblob,
    state_type varbinary(1024),
    state longblob,
    payload longblob not null,
    key message_order (channel_id, priority, due, id)
) engine = InnoDB row_format = dynamic;

-- When a message that has an end ends, if nobody starts it before.
create table if not exists `penstock_expiry` (
    message_id bigint primary key,
    expires_at bigint not null,
    key expiry_order (expires_at)
) engine = InnoDB;

-- "Look at this channel, from this position on": n messages more (or fewer) wait there, or `freed`
-- leases of a limited channel ended. Appended by whoever changes a channel without owning it;
-- consumed only by the owner, who looks afterwards, so none can be lost.
--   ahead    whether it may have to start before what its channel's earlier wakes stand for
create table if not exists `penstock_wake` (
    id bigint auto_increment primary key,
    at bigint not null,
    channel_id binary(16) not null,
    due bigint not null,
    message_id bigint not null,
    n bigint not null,
    freed bigint not null default 0,
    priority tinyint not null,
    ahead boolean not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    key wake_order (queue, at),
    key wake_channel (channel_id, ahead, at)
) engine = InnoDB;

-- The right to work on a message until a time. counted: the claim charged it to the channel's
-- concurrency, so its end leaves a wake.
create table if not exists `penstock_lease` (
    message_id bigint primary key,
    fence bigint not null,
    until bigint not null,
    claimed_at bigint not null,
    channel_id binary(16) not null,
    counted boolean not null,
    worker varbinary(255) not null,
    key lease_until (until)
) engine = InnoDB;

-- A lease that was being written to while its channel got a limit: charged to the channel, and
-- settled by upkeep as soon as it is clear whether the lease lives.
create table if not exists `penstock_stray` (
    message_id bigint not null,
    fence bigint not null,
    channel_id binary(16) not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    primary key (message_id, fence)
) engine = InnoDB;

-- A publish key in use; the id is computed from queue and key. expires_at null: while the message
-- lives; else until then.
create table if not exists `penstock_dedupe` (
    id binary(16) primary key,
    queue varbinary(255) not null,
    `key` varbinary(255) not null,
    message_id bigint not null,
    expires_at bigint,
    key dedupe_expiry (expires_at)
) engine = InnoDB;

create table if not exists `penstock_dead` (
    id bigint primary key,
    died_at bigint not null,
    published_at bigint not null,
    first_published_at bigint not null,
    expires_at bigint,
    key_window bigint,
    attempt bigint not null,
    max_attempts int not null,
    priority tinyint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    `key` varbinary(255),
    content_type varbinary(1024) not null,
    headers longblob,
    state_type varbinary(1024),
    state longblob,
    reason longblob not null,
    error_type longblob,
    error longblob,
    payload longblob not null,
    key dead_order (queue, died_at, id)
) engine = InnoDB row_format = dynamic;

-- How many dead letters came and went, appended; upkeep adds the rows up.
create table if not exists `penstock_dead_count` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    n bigint not null
) engine = InnoDB;

-- One row per finished attempt, and one for each end without an attempt (cancelled, lapsed,
-- discarded, redriven, stale). settled: stamped after the commit, by one at a time; a reader that
-- goes by (settled, id) misses none.
create table if not exists `penstock_history` (
    id bigint auto_increment primary key,
    settled bigint,
    message_id bigint not null,
    fence bigint,
    attempt bigint not null,
    first_published_at bigint,
    published_at bigint,
    due bigint,
    claimed_at bigint,
    ended_at bigint not null,
    payload_size bigint,
    terminal boolean not null,
    dead boolean not null,
    priority tinyint,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    worker varbinary(255),
    outcome varbinary(16) not null,
    reason longblob,
    error_type longblob,
    error longblob,
    key history_message (message_id),
    key history_settled (settled)
) engine = InnoDB row_format = dynamic;

-- Who listens to events: a mailbox each, until a time; the filters are JSON lists, null matches all.
create table if not exists `penstock_listener` (
    id bigint auto_increment primary key,
    until bigint not null,
    read_to bigint not null,
    what longtext,
    queues longblob,
    channels longblob,
    kinds longblob,
    key listener_until (until)
) engine = InnoDB default charset = utf8mb4;

-- What happened, for one listener each: appended by the verbs, deleted by the reader, so that no order
-- of commits can hide anything from it. events is a JSON list of [message id, queue, channel, kind].
create table if not exists `penstock_mail` (
    number bigint auto_increment primary key,
    listener_id bigint not null,
    at bigint not null,
    what varbinary(16) not null,
    events longblob not null,
    key mail_order (listener_id, number)
) engine = InnoDB;
