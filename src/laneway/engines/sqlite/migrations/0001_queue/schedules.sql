-- Schedules: messages that repeat. revision rises with every edit and is never reused, so that a
-- schedule that was removed and created again is not mistaken for the old one.
create table "laneway_schedule" (
    queue text not null,
    name text not null,
    cron text,
    every integer check (every > 0),
    zone text not null,
    start integer,
    catch_up text not null check (catch_up in ('skip', 'once', 'all')),
    grace integer not null,
    topic text,
    channel text not null,
    kind text not null,
    key text,
    key_window integer,
    priority integer not null,
    headers text,
    content_type text not null,
    payload blob not null,
    expires_in integer,
    max_attempts integer not null,
    anchor integer not null,
    paused integer not null,
    next_at integer not null,
    look_at integer,
    last_at integer,
    fired integer not null,
    error text,
    revision integer not null,
    primary key (queue, name),
    check ((cron is null) <> (every is null)),
    check (paused = (look_at is null))
);
create index "laneway_schedule_look" on "laneway_schedule" (look_at) where look_at is not null;

create view "laneway_schedule_v1" as
select queue, name, cron, every, zone, start, catch_up, grace, topic, channel, kind, key, key_window,
    priority, headers, content_type, payload, expires_in, max_attempts, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule";
