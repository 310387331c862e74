-- The private tables. Nothing outside the functions of this schema reads or writes them;
-- people, reports and Spark read the views (views.sql).
--
-- Two kinds of table:
--   still     one row per thing, changed rarely: channel, setting, dedupe, dead.
--   flowing   rows are appended and deleted, never rewritten on the hot path: message, wake,
--             token, lease. Each is found by a position that only moves to the right, so that
--             dead row versions which an old snapshot keeps alive stay behind and are not read.

create schema if not exists "penstock";

create table "penstock".migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- One row: what holds for the whole schema.
create table "penstock".setting (
    single boolean primary key default true check (single),
    history text not null default 'all' check (history in ('all', 'failures', 'none')),
    history_days integer not null default 30 check (history_days >= 1),
    backoff_first interval not null default '1 second' check (backoff_first >= interval '0'),
    backoff_most interval not null default '5 minutes' check (backoff_most >= interval '0')
);
insert into "penstock".setting default values;

-- One still row per channel: its name and policy. Claims create it, publishing never does (an
-- open producer would make others wait), and claims only lock it: whoever holds this row's lock
-- owns the channel's schedule. The id is computed from the two names, so that a publisher needs
-- no look-up.
create table "penstock".channel (
    id uuid primary key,
    queue text collate "C" not null,
    name text collate "C" not null,
    created_at timestamptz not null default clock_timestamp(),
    weight double precision not null default 1 check (weight between 0.01 and 1000),
    concurrency bigint check (concurrency >= 1),
    rate double precision check (rate between 1e-6 and 1e9),
    burst bigint check (burst >= 1),
    backlog bigint check (backlog >= 0),
    paused boolean not null default false,
    closing boolean not null default false,
    check ((rate is null) = (burst is null))
);
-- What a publisher must know about, and only that: usually empty, so the probe costs one page.
create index channel_gate on "penstock".channel (id) where backlog is not null or closing;
-- The same for a claim that wants to know how much each of many channels may start.
create index channel_bound on "penstock".channel (id) where weight <> 1 or concurrency is not null or rate is not null or paused;

create sequence "penstock".message_id;
-- One number a claim. No cache: a cached block would let a later claim hand out a lower fence.
create sequence "penstock".fence;

create table "penstock".message (
    id bigint primary key,
    channel_id uuid not null,
    due timestamptz not null,
    published_at timestamptz not null,
    first_published_at timestamptz not null,
    expires_at timestamptz,
    key_window interval,
    attempt bigint not null default 0,
    spent integer not null default 0,
    max_attempts integer not null,
    priority smallint not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    key text collate "C",
    content_type text not null,
    headers jsonb,
    state_type text,
    state bytea,
    payload bytea not null
);
create index message_order on "penstock".message (channel_id, priority, due, id);
create index message_expiry on "penstock".message (expires_at) where expires_at is not null;

-- "Look at this channel, from this position on": n messages more (or fewer) wait there, or
-- `freed` leases of a limited channel ended. Appended by whoever changes a channel without owning
-- it; consumed only by the owner, who looks afterwards, so none can be lost.
create table "penstock".wake (
    at timestamptz not null,
    channel_id uuid not null,
    due timestamptz not null,
    message_id bigint not null,
    n bigint not null,
    freed bigint not null default 0,
    priority smallint not null,
    queue text collate "C" not null,
    channel text collate "C" not null
);
create index wake_order on "penstock".wake (queue, at);
-- What may have to start before what its channel's earlier wakes stand for: a visit reads all of these.
create index wake_ahead on "penstock".wake (channel_id, at) where priority > 0 or due < at;

-- The schedule of a channel that has known work (or state to remember), one live row each; every
-- visit of an owner replaces it by a higher version. turn: when its turn came (in the ring), when
-- its rate allows the next start (future), or null: parked until a wake (limit full, paused, idle).
-- pri/due/mid: for each priority that has work, the position of the last message taken.
create table "penstock".token (
    channel_id uuid not null,
    version bigint not null,
    turn timestamptz,
    n bigint not null,
    leased bigint not null,
    tat timestamptz,
    credit double precision not null,
    skips bigint not null,
    queue text collate "C" not null,
    pri smallint[] not null,
    due timestamptz[] not null,
    mid bigint[] not null
);
-- Read backwards: the live version is the rightmost, dead ones lie behind it.
create unique index token_latest on "penstock".token (channel_id, version);
create index token_ring on "penstock".token (queue, turn) where turn is not null;
create index token_parked on "penstock".token (queue) where turn is null and n > 0;

create type "penstock".places_v1 as (pri smallint[], due timestamptz[], mid bigint[]);

-- The right to work on a message until a time. counted: the claim charged it to the channel's
-- concurrency, so its end leaves a wake.
create table "penstock".lease (
    message_id bigint primary key,
    fence bigint not null,
    until timestamptz not null,
    claimed_at timestamptz not null,
    channel_id uuid not null,
    counted boolean not null,
    worker text not null
);
create index lease_until on "penstock".lease (until);

-- A lease that was being written to while its channel got a limit: charged to the channel, and
-- settled by upkeep as soon as it is clear whether the lease lives.
create table "penstock".stray (
    message_id bigint not null,
    fence bigint not null,
    channel_id uuid not null,
    queue text collate "C" not null,
    channel text collate "C" not null
);

-- A publish key in use. expires_at null: while the message lives; else until then.
create table "penstock".dedupe (
    queue text collate "C" not null,
    key text collate "C" not null,
    message_id bigint not null,
    expires_at timestamptz,
    primary key (queue, key)
);
create index dedupe_expiry on "penstock".dedupe (expires_at) where expires_at is not null;

create table "penstock".dead (
    id bigint primary key,
    died_at timestamptz not null,
    published_at timestamptz not null,
    first_published_at timestamptz not null,
    expires_at timestamptz,
    key_window interval,
    attempt bigint not null,
    max_attempts integer not null,
    priority smallint not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    key text collate "C",
    content_type text not null,
    headers jsonb,
    state_type text,
    state bytea,
    reason text not null,
    error_type text,
    error text,
    payload bytea not null
);
create index dead_order on "penstock".dead (queue, died_at, id);

-- How many dead letters came and went, appended; upkeep adds the rows up.
create table "penstock".dead_count (
    queue text collate "C" not null,
    channel text collate "C" not null,
    n bigint not null
);

-- One row per finished attempt, and one for each end without an attempt (cancelled, lapsed,
-- discarded, redriven, stale). xid is the settled watermark: a reader that takes rows with
-- xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint in (xid, id) order misses none. (A
-- bigint, because xid8 cannot be indexed by block ranges.)
create sequence "penstock".history_id;
create table "penstock".history (
    id bigint not null default nextval('"penstock".history_id'),
    xid bigint not null default pg_current_xact_id()::text::bigint,
    message_id bigint not null,
    fence bigint,
    attempt bigint not null,
    first_published_at timestamptz,
    published_at timestamptz,
    due timestamptz,
    claimed_at timestamptz,
    ended_at timestamptz not null,
    payload_size bigint,
    terminal boolean not null,
    dead boolean not null,
    priority smallint,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    worker text,
    outcome text not null,
    reason text,
    error_type text,
    error text
) partition by range (ended_at);
create index history_message on "penstock".history (message_id);
-- Autosummarize: a reader of what is new would read all that vacuum has not been at yet.
create index history_settled on "penstock".history using brin (xid) with (pages_per_range = 128, autosummarize = on);
-- Rows of a day whose partition does not exist (yet) are never refused.
create table "penstock".history_other partition of "penstock".history default;

-- Workers that sleep and want to be rung for when something comes to their queue, until a time; see
-- ring_v1. Read by `until`, so that dead versions which an old snapshot keeps alive are left behind.
-- A crash of the server empties it: those workers poll until they sleep anew.
create unlogged table "penstock".sleeper (
    until timestamptz not null,
    queue text collate "C" not null,
    worker text collate "C" not null
);
create index sleeper_until on "penstock".sleeper (until);

-- Who listens to events: a mailbox each, until a time; null matches all. Read by `until`, as sleeper is;
-- a crash of the server empties it, and its readers are told that they may have missed something.
create sequence "penstock".listener_id;
create unlogged table "penstock".listener (
    until timestamptz not null,
    id bigint not null,
    read_to bigint not null,
    what text[],
    queues text[],
    channels text[],
    kinds text[]
);
create index listener_until on "penstock".listener (until);

-- What happened, for one listener each: appended by the verbs, deleted by the reader, so that no order of
-- commits can hide anything from it. One row stands for all messages of a statement.
create sequence "penstock".mail_number;
create unlogged table "penstock".mail (
    listener_id bigint not null,
    number bigint not null,
    at timestamptz not null,
    what text not null,
    ids bigint[] not null,
    queues text[] not null,
    channels text[] not null,
    kinds text[] not null
);
create index mail_order on "penstock".mail (listener_id, number);

-- The flowing tables live on vacuum: by count, not by a share of a size that says nothing.
alter table "penstock".wake set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "penstock".token set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "penstock".lease set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "penstock".message set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
