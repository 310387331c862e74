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
