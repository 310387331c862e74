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
