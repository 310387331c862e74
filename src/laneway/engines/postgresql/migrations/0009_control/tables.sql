-- Pauses of queues and kinds, the audit, bulk operations on dead letters.

-- A queue, or one kind of it, that starts nothing until a time (null: until it is resumed). It has no
-- index: while nothing is paused the table has no pages, so that the look of a claim reads none.
create table "laneway".pause (
    queue text collate "C" not null,
    kind text collate "C",
    until timestamptz,
    since timestamptz not null,
    actor text not null,
    reason text not null
);

-- What operators did, in the transaction in which they did it.
create table "laneway".audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    source text not null,
    action text not null,
    target jsonb not null,
    affected bigint
);

-- Bulk redrives and discards. died_at and letter are the position of the last dead letter that was
-- looked at; only letters that died until started_at are taken.
create table "laneway".operation (
    id bigint generated always as identity primary key,
    action text not null check (action in ('redrive', 'discard')),
    wanted jsonb not null,
    options jsonb not null,
    total bigint,
    done bigint not null default 0,
    state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
    actor text not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    error text,
    died_at timestamptz not null default '-infinity',
    letter bigint not null default 0
);
create index operation_running on "laneway".operation (id) where state = 'running';
