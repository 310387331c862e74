-- Schedules: messages that repeat. A static table: one row each, rewritten at every tick.
--
-- next_at is the next tick. look_at is when a firing should look at the row: the tick itself, a
-- little later after an error, null while paused. Whoever fires holds the row's lock from reading
-- the tick to writing the next one, in the transaction that publishes, so a tick fires once.
-- revision comes from a sequence, so that a schedule which was removed and created again has another one.
create sequence "laneway".schedule_revision;

create table "laneway".schedule (
    queue text collate "C" not null,
    name text collate "C" not null,
    cron text,
    every interval check (every > interval '0'),
    zone text not null,
    start timestamptz,
    catch_up text not null check (catch_up in ('skip', 'once', 'all')),
    grace interval not null,
    topic text collate "C",
    channel text collate "C" not null,
    kind text collate "C" not null,
    key text collate "C",
    key_window interval,
    priority smallint not null,
    headers jsonb,
    content_type text not null,
    payload bytea not null,
    expires_in interval,
    max_attempts integer not null,
    anchor timestamptz not null,
    paused boolean not null,
    next_at timestamptz not null,
    look_at timestamptz,
    last_at timestamptz,
    fired bigint not null,
    error text,
    revision bigint not null,
    primary key (queue, name),
    check ((cron is null) <> (every is null)),
    check (paused = (look_at is null))
);
create index schedule_look on "laneway".schedule (look_at) where look_at is not null;

-- Part of firing a schedule: take these keys from the dead letters that hold them, so that the next message
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
    s.key_window, s.priority, s.headers, s.content_type, s.payload, s.expires_in, s.max_attempts, s.anchor, s.paused,
    s.next_at, s.look_at, s.last_at, s.fired, s.error, s.revision
from "laneway".schedule s;
