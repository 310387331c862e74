-- Schedules: messages that repeat. A static table: one row each, rewritten at every tick.
--
-- next_at is the next tick. look_at is when a firing should look at the row: the tick itself, a
-- little later after an error, null while paused. Whoever fires holds the row's lock from reading
-- the tick to writing the next one, in the transaction that publishes, so a tick fires once.
-- Roles write this table themselves, so it checks what the functions check elsewhere (checks.sql).
-- revision comes from a sequence, so that a schedule which was removed and created again has another one.
create sequence "laneway".schedule_revision;

create table "laneway".schedule (
    queue text collate "C" not null,
    name text collate "C" not null,
    cron text,
    every interval check (every > interval '0'),
    zone text not null,
    start timestamptz check (extract(epoch from start) + 62135596800 between 0 and 315537897599),
    catch_up text not null check (catch_up in ('skip', 'once', 'all')),
    grace interval not null,
    topic text collate "C",
    channel text collate "C" not null,
    kind text collate "C" not null,
    key text collate "C",
    key_window interval,
    priority smallint not null check (priority between 0 and 200),
    headers jsonb,
    content_type text not null,
    payload bytea not null,
    expires_in interval,
    max_attempts integer not null check (max_attempts >= 1),
    key_scope text not null check (key_scope in ('kind', 'channel', 'queue')),
    anchor timestamptz not null check (extract(epoch from anchor) + 62135596800 between 0 and 315537897599),
    paused boolean not null,
    next_at timestamptz not null check (extract(epoch from next_at) + 62135596800 between 0 and 315537897599),
    look_at timestamptz check (extract(epoch from look_at) + 62135596800 between 0 and 315537897599),
    last_at timestamptz check (extract(epoch from last_at) + 62135596800 between 0 and 315537897599),
    fired bigint not null,
    error text check (length(error) <= 16384),
    revision bigint not null,
    primary key (queue, name),
    check ((cron is null) <> (every is null)),
    check (octet_length(queue) between 1 and 255 and octet_length(name) between 1 and 255 and octet_length(topic) between 1 and 255
        and octet_length(channel) between 1 and 255 and octet_length(kind) <= 255 and octet_length(key) between 1 and 255),
    check (octet_length(cron) <= 255 and octet_length(zone) <= 255 and octet_length(content_type) <= 255),
    check (paused = (look_at is null))
);
create index schedule_look on "laneway".schedule (look_at) where look_at is not null;

-- Part of firing a schedule: take these keys (by their names, see key_names_v1) from the dead letters that hold them, so that the next message
-- of the schedule can have them. Answers which were taken.
--
-- Keeps: a key belongs to one message. The letter's row is locked first, so that it is not redriven meanwhile;
-- one that is being redriven or discarded is left alone.
create or replace function "laneway".free_dead_keys_v1(p_queues text[], p_keys text[])
returns table (queue text, key text)
language sql
set search_path = "laneway", pg_temp
as $$
    with held as materialized (
        select x.id, d.queue, d.key
        from unnest(p_queues, p_keys) k(queue, key)
        join dedupe d on d.queue = k.queue and d.key = k.key
        join dead x on x.id = d.message_id
        for update of x skip locked
    ), freed as (
        delete from dedupe d using held h
        where d.queue = h.queue and d.key = h.key and d.message_id = h.id
    )
    update dead x set key = null, key_window = null
    from held h where x.id = h.id
    returning h.queue, h.key
$$;

create view "laneway".schedule_v1 as
select s.queue, s.name, s.cron, s.every, s.zone, s.start, s.catch_up, s.grace, s.topic, s.channel, s.kind, s.key,
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.key_scope, s.anchor, s.paused,
    s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from "laneway".schedule s;
