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
