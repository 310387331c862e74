-- The private tables. People, reports and Spark read the views (views.sql).
--
-- Times are microseconds since 1970 in UTC, so that no session's time zone changes them. Names are
-- bytes of UTF-8: equal only if every byte is the same, including trailing spaces. There are no
-- foreign keys and no unique indexes except primary keys: other sessions would wait for their locks.
--
-- Two kinds of tables:
--   one row per thing     channel, setting, dedupe, dead.
--   append and delete     message, wake, lease, history. Rows are found from a position that only
--                         moves to the right. So deleted rows that an old snapshot keeps from being
--                         purged stay to the left of it and are not read.
--
-- Every statement can be repeated: MySQL commits each of them separately.

create table if not exists `laneway_migration` (
    number int primary key,
    name varchar(64) not null,
    applied_at bigint not null
) engine = InnoDB default charset = utf8mb4;

-- One row: the settings of this installation.
create table if not exists `laneway_setting` (
    single tinyint primary key,
    history varbinary(8) not null default 'all',
    history_days int not null default 30,
    backoff_initial bigint not null default 1000000,
    backoff_max bigint not null default 300000000,
    audit_days int not null default 90
) engine = InnoDB;
insert ignore into `laneway_setting` (single) values (1);

-- Tasks that one session at a time may do, which locks the task's row: 'upkeep', 'settle' (stamping
-- the history; n is the last stamp) and 'pause', of which by_kind says how many queues are claimed by kind.
create table if not exists `laneway_turnstile` (
    name varbinary(16) primary key,
    n bigint not null default 0,
    by_kind bigint not null default 0,
    fair bigint not null default 0
) engine = InnoDB;
insert ignore into `laneway_turnstile` (name) values ('upkeep'), ('settle');

-- Lives of servers (docs/decisions/0027-server-lives.md): the newest row names the server that gives out numbers now,
-- and when it started. All ids of its time are above its number.
create table if not exists `laneway_server_life` (
    id bigint auto_increment primary key,
    number bigint not null,
    server varbinary(1000) not null
) engine = InnoDB;

-- Fences: one number for each claim. The counter is never rolled back; upkeep deletes the rows.
create table if not exists `laneway_fence` (
    id bigint auto_increment primary key
) engine = InnoDB;

-- One row per channel: its names, its policy, and its state for scheduling. Claims create it,
-- publishing never does (others would wait for an open transaction). Only a session that has locked
-- the row changes the state. The id is computed from the two names, so publishers need no lookup.
--   gated    1 if publishers must check it (a backlog limit, or closing), else null
--   turn     when its turn came (it is in the ring), when its rate allows the next start (a future
--            time), far in the future (parked: it has work and waits for a wake), or null (no known
--            work)
--   n        waiting messages, except those that unread wakes count
--   leased   leases charged to its concurrency limit, before subtracting what unread wakes freed
--   tat      theoretical arrival time of its rate limit
--   credit   what is left of its share of a round
--   skips    starts by priority since the message that had waited longest was started
--   oldest   the earliest due time of its known messages
--   places   for each priority with known work, the position after which it begins
create table if not exists `laneway_channel` (
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
    paused_until bigint,
    throttled boolean not null default false,
    closing boolean not null default false,
    gated tinyint,
    turn bigint,
    n bigint not null default 0,
    leased bigint not null default 0,
    tat bigint,
    credit double not null default 0,
    skips bigint not null default 0,
    oldest bigint,
    places varbinary(9000) not null default '',
    key channel_ring (queue, turn),
    key channel_gate (gated, closing),
    key channel_timed (paused_until)
) engine = InnoDB;

-- key: the name of its key, as in dedupe; flow_id: the flow that it is a node of, or null: then nothing that ends it looks at the tables of flows.
create table if not exists `laneway_message` (
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
    priority smallint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    `key` varbinary(271),
    content_type varbinary(1024) not null,
    headers longblob,
    state_type varbinary(1024),
    state longblob,
    payload longblob not null,
    flow_id bigint,
    key message_order (channel_id, priority, due, id)
) engine = InnoDB row_format = dynamic;

-- Messages that expire, by time.
create table if not exists `laneway_expiry` (
    message_id bigint primary key,
    expires_at bigint not null,
    key expiry_order (expires_at)
) engine = InnoDB;

-- A wake tells the next claim to look at a channel from a position on: n more (or fewer) messages
-- wait there, or `freed` counted leases ended; message_id is then how long their handlers took, as
-- microseconds below zero (0: they did not begin). Added by sessions that change a channel without
-- locking it; consumed only by a session that has locked it and looks for messages afterwards, so
-- none can be lost.
--   ahead    whether its messages may have to start before those of earlier wakes of the channel
create table if not exists `laneway_wake` (
    id bigint auto_increment primary key,
    at bigint not null,
    channel_id binary(16) not null,
    due bigint not null,
    message_id bigint not null,
    n bigint not null,
    freed bigint not null default 0,
    priority smallint not null,
    ahead boolean not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    key wake_order (queue, at),
    key wake_channel (channel_id, ahead, at)
) engine = InnoDB;

-- The right to work on a message until a time. counted: the claim charged it to the channel's
-- concurrency limit, so its end adds a wake.
create table if not exists `laneway_lease` (
    message_id bigint primary key,
    fence bigint not null,
    until bigint not null,
    claimed_at bigint not null,
    channel_id binary(16) not null,
    counted boolean not null,
    worker varbinary(255) not null,
    key lease_until (until)
) engine = InnoDB;

-- Leases that somebody was writing to while their channel got a limit. They are charged to the
-- channel; upkeep settles them when it is known whether the lease still exists.
create table if not exists `laneway_stray` (
    message_id bigint not null,
    fence bigint not null,
    channel_id binary(16) not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    primary key (message_id, fence),
    key stray_channel (channel_id)
) engine = InnoDB;

-- Publish keys in use, by name: the scope in which one holds (16 characters, engines/keys.py), then the key itself. The id is
-- computed from queue and name. expires_at is null while the message
-- exists; afterwards the key stays taken until then. behind: a running message that had the key before; the
-- key's message waits until it has ended, and is due at behind_due then (docs/decisions/0017-key-modes.md).
create table if not exists `laneway_dedupe` (
    id binary(16) primary key,
    queue varbinary(255) not null,
    `key` varbinary(271) not null,
    message_id bigint not null,
    expires_at bigint,
    behind bigint,
    behind_due bigint,
    key dedupe_expiry (expires_at)
) engine = InnoDB;

-- tell_at: when somebody may be told of it: null after that; later than now while somebody is being told.
create table if not exists `laneway_dead` (
    id bigint primary key,
    died_at bigint not null,
    published_at bigint not null,
    first_published_at bigint not null,
    expires_at bigint,
    key_window bigint,
    attempt bigint not null,
    max_attempts int not null,
    priority smallint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    `key` varbinary(271),
    content_type varbinary(1024) not null,
    headers longblob,
    state_type varbinary(1024),
    state longblob,
    reason longblob not null,
    error_type longblob,
    error longblob,
    traceback longblob,
    payload longblob not null,
    flow_id bigint,
    tell_at bigint,
    key dead_order (queue, died_at, id),
    key dead_time (died_at, id),
    key dead_flow (flow_id, id),
    key dead_untold (queue, tell_at)
) engine = InnoDB row_format = dynamic;

-- Changes of the number of dead letters; upkeep adds the rows up.
create table if not exists `laneway_dead_count` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    n bigint not null
) engine = InnoDB;

-- One row per finished attempt, and one for each end without an attempt (cancelled, lapsed,
-- discarded, redriven, stale). started_at: when its handler began, if the message had waited inside a
-- worker before; null: claimed_at. Wait and run times are measured from coalesce(started_at, claimed_at).
-- settled: a stamp that is set after the commit, by one session at a
-- time; a reader that follows (settled, id) misses nothing.
create table if not exists `laneway_history` (
    id bigint auto_increment primary key,
    settled bigint,
    message_id bigint not null,
    fence bigint,
    attempt bigint not null,
    first_published_at bigint,
    published_at bigint,
    due bigint,
    claimed_at bigint,
    started_at bigint,
    ended_at bigint not null,
    payload_size bigint,
    terminal boolean not null,
    dead boolean not null,
    priority smallint,
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

-- Listeners to events: a mailbox each, until a time. The filters are JSON lists, null matches all.
create table if not exists `laneway_listener` (
    id bigint auto_increment primary key,
    until bigint not null,
    read_to bigint not null,
    what longtext,
    queues longblob,
    channels longblob,
    kinds longblob,
    key listener_until (until)
) engine = InnoDB default charset = utf8mb4;

-- Events, for one listener each: added by the verbs, deleted by the listener after reading, so that
-- none is missed in whatever order transactions commit. events is a JSON list of [message id, queue,
-- channel, kind].
create table if not exists `laneway_mail` (
    number bigint auto_increment primary key,
    listener_id bigint not null,
    at bigint not null,
    what varbinary(16) not null,
    events longblob not null,
    key mail_order (listener_id, number)
) engine = InnoDB;

-- Topics: which queues get a copy of what is published to a topic. Only publishers read it. channel
-- and kind replace those of the message; null keeps them.
create table if not exists `laneway_subscription` (
    topic varbinary(255) not null,
    queue varbinary(255) not null,
    channel varbinary(255),
    kind varbinary(255),
    primary key (topic, queue)
) engine = InnoDB;

-- What handlers have already done, by a key of their choice; kept until a time. The id is computed
-- from queue and key. mark tells a session whether the row is the one that it inserted.
create table if not exists `laneway_done` (
    id binary(16) primary key,
    queue varbinary(255) not null,
    `key` varbinary(255) not null,
    keep_until bigint not null,
    mark bigint not null,
    key done_expiry (keep_until)
) engine = InnoDB;

-- Shared limits: docs/decisions/0021-shared-limits.md.
--
-- One row a limit; named by a message and never set: a row without limits. Whoever holds its lock decides who starts
-- behind it. tat: as in a channel. rest_until: nothing starts before (a handler raised Throttled, or its breaker is
-- open). concurrency: the number in force, set_concurrency: what was set. The rest: LimitControl in limits.py.
create table if not exists `laneway_shared_limit` (
    name varbinary(100) primary key,
    concurrency bigint,
    rate double,
    burst bigint,
    tat bigint,
    rest_until bigint,
    created_at bigint not null default (timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    set_concurrency bigint,
    adapt_min bigint,
    adapt_max bigint,
    adapted bigint,
    successes bigint not null default 0,
    breaker_failures double,
    breaker_window bigint,
    breaker_minimum bigint,
    breaker_pause bigint,
    opened_at bigint,
    open_until bigint,
    recent varbinary(1000),
    round bigint not null default 0,
    adapt_round bigint not null default 0,
    breaker_round bigint not null default 0,
    key shared_limit_adapt (adapt_min),
    key shared_limit_breaker (breaker_window)
) engine = InnoDB;

-- Who runs behind a limit. A row counts while its lease exists; the next who needs the number deletes the others.
-- outcome: how it ended or is about to end (AttemptEnd), of limits that adapt or have a breaker. round: of the limit,
-- when it started.
create table if not exists `laneway_limit_lease` (
    name varbinary(100) not null,
    message_id bigint not null,
    fence bigint not null,
    round bigint not null default 0,
    outcome tinyint,
    ended_at bigint,
    primary key (name, message_id)
) engine = InnoDB;

-- A channel that waits for a set of limits (their names, sorted, with commas between), guarded by the channel's lock.
-- pass: how much it has had, by weight: the lowest is next. used: when it began to wait or started something, or
-- when upkeep last saw that it has to stay. A row stays for a minute after its last message, so that nobody gains by coming back.
create table if not exists `laneway_limit_lane` (
    limits varbinary(420) not null,
    channel_id binary(16) not null,
    queue varbinary(255) not null,
    pass double not null,
    waiting boolean not null,
    used bigint not null,
    primary key (limits, channel_id),
    key limit_lane_order (limits, waiting, pass),
    key limit_lane_idle (waiting, used),
    key limit_lane_queue (limits, queue, waiting),
    key limit_lane_channel (channel_id, waiting)
) engine = InnoDB;

-- How far a set of limits has come: LimitClock. Guarded by the locks of its limits. at: when it was written; upkeep moves
-- on what is still needed.
create table if not exists `laneway_limit_clock` (
    limits varbinary(420) primary key,
    points blob not null,
    `at` bigint not null,
    key limit_clock_at (`at`)
) engine = InnoDB;

-- A message that waits for its limits: put back for an hour, and made due when its turn comes (released). place: by
-- priority, the highest first.
create table if not exists `laneway_limit_wait` (
    message_id bigint primary key,
    limits varbinary(420) not null,
    channel_id binary(16) not null,
    kind varbinary(255) not null,
    place smallint not null,
    due bigint not null,
    released bigint,
    charge double not null default 0,
    key limit_wait_order (limits, channel_id, released, place, due, message_id),
    key limit_wait_released (released)
) engine = InnoDB;

-- Which sets of limits messages of a queue wait for.
create table if not exists `laneway_limit_queue` (
    queue varbinary(255) not null,
    limits varbinary(420) not null,
    primary key (queue, limits)
) engine = InnoDB;
