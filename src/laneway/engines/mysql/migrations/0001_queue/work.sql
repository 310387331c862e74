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
    key_scope varbinary(16) not null,
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
    s.payload, s.expires_in, s.max_attempts, convert(s.key_scope using utf8mb4) as key_scope,
    timestampadd(microsecond, s.anchor, timestamp '1970-01-01 00:00:00') as anchor, s.paused,
    timestampadd(microsecond, s.next_at, timestamp '1970-01-01 00:00:00') as next_at,
    timestampadd(microsecond, s.look_at, timestamp '1970-01-01 00:00:00') as look_at,
    timestampadd(microsecond, s.last_at, timestamp '1970-01-01 00:00:00') as last_at,
    s.fired, convert(s.error using utf8mb4) as error, s.revision
from `laneway_schedule` s;

-- Claims of some kinds only: docs/decisions/0016-claims-by-kind.md. In queues that nobody claims by kind all of
-- these tables stay empty, and no verb reads or writes them: turnstile.by_kind says so.

-- Queues that are claimed by kind.
create table if not exists `laneway_kind_queue` (
    queue varbinary(255) primary key
) engine = InnoDB;

-- What waits in such queues, once more, by kind. lane: '=' and the kind. Publishers that know the queue to be
-- claimed by kind add rows, and claims add those of other messages; a claim that takes a message deletes its
-- row. Of a message that was cancelled or made due a row may be left, which is passed over.
create table if not exists `laneway_kind_message` (
    channel_id binary(16) not null,
    lane varbinary(256) not null,
    priority smallint not null,
    due bigint not null,
    message_id bigint not null,
    primary key (channel_id, lane, priority, due, message_id)
) engine = InnoDB;

-- Wakes of messages that are in kind_message. What was published by those who do not know, what is put back, and
-- what concerns a whole channel has wakes in the other table.
create table if not exists `laneway_kind_wake` (
    id bigint auto_increment primary key,
    at bigint not null,
    channel_id binary(16) not null,
    due bigint not null,
    message_id bigint not null,
    n bigint not null,
    priority smallint not null,
    ahead boolean not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    lane varbinary(256) not null,
    key kind_wake_order (queue, lane, at),
    key kind_wake_all (queue, at),
    key kind_wake_channel (channel_id, lane, ahead, at)
) engine = InnoDB;

-- What a channel has of a kind, for claims of this kind: columns as those of the channel, whose limits count. Only
-- a session that has locked the channel's row reads or writes them. The lane '-' holds the positions after which
-- messages may not be in kind_message.
create table if not exists `laneway_lane` (
    channel_id binary(16) not null,
    lane varbinary(256) not null,
    queue varbinary(255) not null,
    turn bigint not null,
    credit double not null default 0,
    skips bigint not null default 0,
    places varbinary(9000) not null,
    primary key (channel_id, lane),
    key lane_ring (queue, lane, turn)
) engine = InnoDB;

-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table if not exists `laneway_result` (
    message_id bigint primary key,
    ended_at bigint not null,
    expires_at bigint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    outcome varbinary(255) not null,
    reason longblob,
    error_type longblob,
    error longblob,
    content_type varbinary(255),
    payload longblob,
    key result_expiry (expires_at)
) engine = InnoDB row_format = dynamic;

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table if not exists `laneway_progress` (
    message_id bigint primary key,
    fence bigint not null,
    at bigint not null,
    share double,
    note longblob,
    key progress_at (at)
) engine = InnoDB;

-- Flows: messages that wait for other messages; docs/decisions/0018-flows.md. A node is a message of a flow and has
-- its id. One whose parents have not all been decided is not in the table of messages yet: its row for the publish
-- lies in flow_held. Messages outside of flows have nothing to do with these tables: their flow_id is null.
--
-- What a call locks here it finds by whole primary keys, with numbers that the node's row counts (children, added): a
-- look at a range would lock gaps in a caller's transaction at REPEATABLE READ, and others could add nothing there.

-- The counts are as upkeep last added them up; what has changed since is in flow_count.
create table if not exists `laneway_flow` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    name varbinary(255) not null,
    created_at bigint not null,
    keep bigint not null,
    cancelled_at bigint,
    ended_at bigint,
    expires_at bigint,
    held bigint not null default 0,
    live bigint not null default 0,
    dead bigint not null default 0,
    completed bigint not null default 0,
    failed bigint not null default 0,
    skipped bigint not null default 0,
    key flow_queue (queue, id),
    key flow_expiry (expires_at)
) engine = InnoDB;

-- Names of flows that have not ended, as far as that was noted; the id is computed from queue and name.
create table if not exists `laneway_flow_name` (
    id binary(16) primary key,
    flow_id bigint not null
) engine = InnoDB;

-- Changes of the counts, appended: the row of the flow would be rewritten by everybody who ends something.
create table if not exists `laneway_flow_count` (
    id bigint auto_increment primary key,
    flow_id bigint not null,
    held bigint not null,
    live bigint not null,
    dead bigint not null,
    completed bigint not null,
    failed bigint not null,
    skipped bigint not null,
    key flow_count_flow (flow_id)
) engine = InnoDB;

-- state: held, live (a message), dead (a letter), completed, cancelled, lapsed, discarded or skipped (not to be run).
-- pending: parents that are not decided yet; missed: parents that were decided otherwise than by completing.
-- died: was dead once; children that do not wait for its completion were decided then.
-- children: edges from here. added: what the holder of the lease with the fence added, in flow_added.
-- ended_at: 0 until then. It and the state are as wide whatever they are, so that a row is changed in its place.
create table if not exists `laneway_flow_node` (
    id bigint primary key,
    flow_id bigint not null,
    pending int not null,
    missed int not null default 0,
    children int not null default 0,
    added int not null default 0,
    added_fence bigint,
    run_when varbinary(16) not null,
    state enum('held', 'live', 'dead', 'completed', 'failed', 'cancelled', 'lapsed', 'discarded', 'skipped')
        character set ascii not null,
    died boolean not null default false,
    ended_at bigint not null default 0,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    key flow_node_flow (flow_id, id)
) engine = InnoDB;

-- strict: the child waits for the parent's completion, and a dead parent holds it. number: from 0 for each parent;
-- place: among the parents of the child, in the order that was given.
create table if not exists `laneway_flow_edge` (
    parent bigint not null,
    number int not null,
    child bigint not null,
    strict boolean not null,
    place int not null,
    primary key (parent, number),
    key flow_edge_child (child, place)
) engine = InnoDB;

-- What is published when its node is released; delay and expires_in are counted from then.
create table if not exists `laneway_flow_held` (
    id bigint primary key,
    flow_id bigint not null,
    delay bigint,
    at bigint,
    expires_in bigint,
    expires_at bigint,
    max_attempts int not null,
    priority smallint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    content_type varbinary(1024) not null,
    headers longblob,
    payload longblob not null
) engine = InnoDB row_format = dynamic;

-- Children of nodes that ended, or died, which are not decided yet: from this number on. There were too many for one call,
-- or somebody else came in between; upkeep goes on with them. strict: those that wait for the parent's completion;
-- others: those that do not; missed: the parent has not completed. Whoever writes a row has its parent locked.
create table if not exists `laneway_flow_undecided` (
    parent bigint not null,
    strict boolean not null,
    others boolean not null,
    missed boolean not null,
    start int not null,
    flow_id bigint not null,
    primary key (parent, strict),
    key flow_undecided_flow (flow_id)
) engine = InnoDB;

-- Nodes that were released and not counted yet: upkeep counts messages by their ids, and theirs are old. A row for each call
-- that released some; ids: a JSON list, n: how many.
create table if not exists `laneway_flow_released` (
    number bigint auto_increment primary key,
    n int not null,
    ids longblob not null
) engine = InnoDB row_format = dynamic;

-- What the holder of a message's lease added: no nodes yet, they become that when this lease completes the message.
-- parents: a JSON list.
create table if not exists `laneway_flow_added` (
    adder bigint not null,
    number int not null,
    id bigint not null,
    run_when varbinary(16) not null,
    parents longblob not null,
    primary key (adder, number)
) engine = InnoDB;
