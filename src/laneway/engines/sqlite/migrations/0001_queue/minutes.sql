-- Figures per minute, and counts of what is too much to be counted at every look. Upkeep writes both;
-- publish, claim and complete do not know of them.

-- One row: how far upkeep has read messages and history (both by id, in which order nothing appears late,
-- because ids are given out under the write lock), up to which minute it has noted depths, when it counts the
-- channels again, how often the setting "history" was changed, and as of which of these changes kind_count is.
create table "laneway_fold" (
    single integer primary key check (single = 1),
    message_id integer not null,
    history_id integer not null,
    noted_to integer not null default 0,
    count_at integer not null default 0,
    history_changes integer not null default 0,
    kinds_counted integer
);
insert into "laneway_fold" (single, message_id, history_id, kinds_counted) values (1, 0, 0, 0);

-- How many messages have not ended, as of the position in fold. Right if kinds_counted is history_changes:
-- while the history does not keep everything, ends are missed, and the messages have to be counted anew.
create table "laneway_kind_count" (
    queue text not null,
    kind text not null,
    live integer not null,
    primary key (queue, kind)
) without rowid;

-- Figures of minutes (span 1) and of whole hours (span 60) by queue and kind. wait_0 to wait_12 and run_0
-- to run_12 are histograms: attempts per bucket of wait and run time.
create table "laneway_minute" (
    span integer not null,
    at integer not null,
    queue text not null,
    kind text not null,
    published integer not null, started integer not null, completed integer not null,
    retried integer not null, failed integer not null, expired integer not null,
    deferred integer not null, given_back integer not null, cancelled integer not null,
    lapsed integer not null, redriven integer not null, discarded integer not null,
    dead integer not null, wait_0 integer not null, wait_1 integer not null,
    wait_2 integer not null, wait_3 integer not null, wait_4 integer not null,
    wait_5 integer not null, wait_6 integer not null, wait_7 integer not null,
    wait_8 integer not null, wait_9 integer not null, wait_10 integer not null,
    wait_11 integer not null, wait_12 integer not null, run_0 integer not null,
    run_1 integer not null, run_2 integer not null, run_3 integer not null, run_4 integer not null,
    run_5 integer not null, run_6 integer not null, run_7 integer not null, run_8 integer not null,
    run_9 integer not null, run_10 integer not null, run_11 integer not null,
    run_12 integer not null, primary key (span, at, queue, kind)
) without rowid;

-- How many messages of a queue had not ended at the end of a minute.
create table "laneway_depth" (
    at integer not null,
    queue text not null,
    depth integer not null,
    oldest_due integer,
    primary key (at, queue)
) without rowid;

-- How many messages of a kind had not ended at the end of a minute. A row without queue and kind says that
-- this minute was noted: who has none there had nothing.
create table "laneway_kind_depth" (
    at integer not null,
    queue text not null,
    kind text not null,
    depth integer not null,
    primary key (at, queue, kind)
) without rowid;

-- When not all of the history was kept: figures of these times are incomplete.
create table "laneway_history_gap" (
    begins integer not null,
    ends integer
);

-- Queues, as upkeep counted them last. Looks use it where there are too many channels to add them up.
create table "laneway_queue_count" (
    queue text primary key,
    waiting integer not null,
    scheduled integer not null,
    leased integer not null,
    dead integer not null,
    channels integer not null,
    oldest_due integer,
    counted_at integer not null,
    message_id integer not null
) without rowid;

-- The fullest channels of each queue, as upkeep counted them last.
create table "laneway_fullest" (
    queue text not null,
    place integer not null,
    channel_id integer not null,
    primary key (queue, place)
) without rowid;

-- Channels in which so many are due and so many scheduled that a look counts neither.
create table "laneway_split_count" (
    channel_id integer primary key,
    scheduled integer not null
);

-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
-- waits and runs are JSON arrays. Two parts, in each of which a time is found by the key: minutes in which
-- something happened, and minutes in which something was only left.
create view "laneway_minute_v1" as
select m.at, m.queue, m.kind, m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred,
    m.given_back, m.cancelled, m.lapsed, m.redriven, m.discarded, m.dead,
    json_array(m.wait_0, m.wait_1, m.wait_2, m.wait_3, m.wait_4, m.wait_5, m.wait_6, m.wait_7, m.wait_8,
        m.wait_9, m.wait_10, m.wait_11, m.wait_12) as waits,
    json_array(m.run_0, m.run_1, m.run_2, m.run_3, m.run_4, m.run_5, m.run_6, m.run_7, m.run_8, m.run_9,
        m.run_10, m.run_11, m.run_12) as runs,
    case when exists (select 1 from "laneway_kind_depth" n where n.at = m.at and n.queue = '' and n.kind = '')
        then coalesce((select d.depth from "laneway_kind_depth" d
            where d.at = m.at and d.queue = m.queue and d.kind = m.kind), 0) end as depth,
    (select q.oldest_due from "laneway_depth" q where q.at = m.at and q.queue = m.queue) as oldest,
    not exists (select 1 from "laneway_history_gap" g
        where g.begins < m.at + 60000000 and (g.ends is null or g.ends >= m.at)) as exact
from "laneway_minute" m where m.span = 1
union all
select d.at, d.queue, d.kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, d.depth,
    (select q.oldest_due from "laneway_depth" q where q.at = d.at and q.queue = d.queue),
    not exists (select 1 from "laneway_history_gap" g
        where g.begins < d.at + 60000000 and (g.ends is null or g.ends >= d.at))
from "laneway_kind_depth" d
where d.queue <> '' and not exists (
    select 1 from "laneway_minute" m where m.span = 1 and m.at = d.at and m.queue = d.queue and m.kind = d.kind);
