-- Pauses of queues and kinds, the audit, bulk operations on dead letters.

-- A queue, or one kind of it (kind: null for all), that starts nothing until a time (null: until it is
-- resumed).
create table "laneway_pause" (
    id integer primary key,
    queue text not null,
    kind text,
    until integer,
    since integer not null,
    actor text not null,
    reason text not null
);

-- What operators did, in the transaction in which they did it.
create table "laneway_audit" (
    id integer primary key autoincrement,
    at integer not null,
    actor text not null,
    source text not null,
    action text not null,
    target text not null,
    affected integer
);

-- Bulk redrives and discards. died_at and letter are the position of the last dead letter that was
-- looked at; only letters that died until started_at are taken.
create table "laneway_operation" (
    id integer primary key autoincrement,
    action text not null check (action in ('redrive', 'discard')),
    wanted text not null,
    options text not null,
    total integer,
    done integer not null default 0,
    state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
    actor text not null,
    started_at integer not null,
    ended_at integer,
    error text,
    died_at integer,
    letter integer
);
create index "laneway_operation_running" on "laneway_operation" (id) where state = 'running';

-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history call
-- it; several processes may share one. queues and kinds are JSON lists; no kinds: it handles every kind.
create table "laneway_worker" (
    id text primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text not null,
    kinds text not null,
    slots integer not null,
    used integer not null,
    stopping integer not null,
    started_at integer not null,
    seen_at integer not null
) without rowid;

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the next
-- holder has another fence. Upkeep deletes what has no lease.
create table "laneway_cancel_request" (
    fence integer not null,
    message_id integer not null,
    worker text not null,
    requested_at integer not null,
    primary key (fence, message_id)
) without rowid;

-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create view "laneway_worker_v1" as
select id, name, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < (julianday('now') - 2440587.5) * 86400000000 - 30000000 then 'vanished'
        when stopping then 'stopping' else 'running' end as state
from "laneway_worker";

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

-- The catalog of the lake: which part of the history is in which files, and in which state. A batch is a
-- range of ids (from_xid and to_xid are 0). States: planned -> written -> verified -> purged.
create table "laneway_lake_commit" (
    lake text not null,
    batch integer not null,
    from_xid integer not null,
    from_id integer not null,
    to_xid integer not null,
    to_id integer not null,
    rows integer not null,
    checksum text not null,
    first_ended_at integer not null,
    last_ended_at integer not null,
    state text not null check (state in ('planned', 'written', 'verified', 'purged')),
    planned_at integer not null,
    primary key (lake, batch)
) without rowid;

-- One row per file; batches and replaces are JSON lists. While staged is set, the file is at that path
-- and the files that it replaces may still exist.
create table "laneway_lake_file" (
    lake text not null,
    path text not null,
    day integer not null,
    batches text not null,
    rows integer not null,
    checksum text not null,
    size integer not null,
    staged text,
    replaces text,
    primary key (lake, path)
) without rowid;

create index "laneway_lake_commit_open" on "laneway_lake_commit" (lake, from_id) where state in ('planned', 'written');

-- Private: up to which id all lakes have verified the history; null if there is no lake. One lookup per
-- lake, however many batches there are.
create view "laneway_lake_sure" as
with recursive name (lake) as (
    select min(c.lake) from "laneway_lake_commit" c
    union all
    select (select min(c.lake) from "laneway_lake_commit" c where c.lake > n.lake) from name n where n.lake is not null
)
select min(coalesce(
    (select min(c.from_id) from "laneway_lake_commit" c where c.lake = n.lake and c.state in ('planned', 'written')),
    (select c.to_id from "laneway_lake_commit" c where c.lake = n.lake order by c.batch desc limit 1))) as id
from name n
where n.lake is not null;
