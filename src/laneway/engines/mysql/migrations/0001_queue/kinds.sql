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
