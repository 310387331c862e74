-- Depths by kind. Upkeep counts them from what is published and what ends, with the figures per minute.

-- How many messages have not ended, as of the position in fold. Right if kinds_counted is history_changes:
-- while the history does not keep everything, ends are missed, and the messages have to be counted anew.
create table "laneway_kind_count" (
    queue text not null,
    kind text not null,
    live integer not null,
    primary key (queue, kind)
) without rowid;
alter table "laneway_fold" add column history_changes integer not null default 0;
alter table "laneway_fold" add column kinds_counted integer;
update "laneway_fold" set kinds_counted = 0
where (select s.message_id = 0 and s.history = 'all' from "laneway_state" s);

-- How many messages of a kind had not ended at the end of a minute. A row without queue and kind says that
-- this minute was noted: who has none there had nothing.
create table "laneway_kind_depth" (
    at integer not null,
    queue text not null,
    kind text not null,
    depth integer not null,
    primary key (at, queue, kind)
) without rowid;

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
