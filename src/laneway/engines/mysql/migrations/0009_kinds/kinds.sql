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
    priority tinyint not null,
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
    priority tinyint not null,
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
    places varbinary(1000) not null,
    primary key (channel_id, lane),
    key lane_ring (queue, lane, turn)
) engine = InnoDB;

-- As before, with the wakes of messages that are found by their kinds.
create or replace view `laneway_stats` as
select p.queue, p.channel, greatest(sum(p.waiting), 0) as waiting, greatest(sum(p.scheduled), 0) as scheduled,
    sum(p.leased) as leased, sum(p.dead) as dead, case when sum(p.waiting) > 0 then min(p.oldest) end as oldest_due
from (
    select c.queue, c.name as channel, c.n as waiting, 0 as scheduled, 0 as leased, 0 as dead, c.oldest
    from `laneway_channel` c where c.n <> 0
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_wake` w
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_kind_wake` w
    union all
    select c.queue, c.name, 0, 0, l.n, 0, null
    from (select k.channel_id, count(*) as n from `laneway_lease` k group by k.channel_id) l
    join `laneway_channel` c on c.id = l.channel_id
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_count` d
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_sum` d
) p
group by p.queue, p.channel
having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0;
