-- Figures per minute, and counts of what is too much to be counted at every look. Upkeep writes both;
-- publish, claim and complete do not know of them.

-- One row: how far upkeep has read messages and history (both by id, in which order nothing appears late,
-- because ids are given out under the write lock), up to which minute it has noted depths, and when it
-- counts the channels again. What was there before this migration is not read.
create table "laneway_fold" (
    single integer primary key check (single = 1),
    message_id integer not null,
    history_id integer not null,
    noted_to integer not null default 0,
    count_at integer not null default 0
);
insert into "laneway_fold" (single, message_id, history_id)
select 1, s.message_id, coalesce((select max(h.id) from "laneway_history" h), 0) from "laneway_state" s;

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

-- When not all of the history was kept: figures of these times are incomplete.
create table "laneway_history_gap" (
    begins integer not null,
    ends integer
);
insert into "laneway_history_gap" (begins) select 0 from "laneway_state" where history <> 'all';

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

-- Lists of channels by policy. Publish, claim and complete change none of these columns.
create index "laneway_channel_limited" on "laneway_channel" (queue, name)
    where concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused
        or closing;
create index "laneway_channel_paused" on "laneway_channel" (queue, name) where paused;
