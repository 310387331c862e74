-- The private tables. SQLite has one writer at a time, so everything here is exact at every commit:
-- counts, limits and turns are plain columns, changed in place by whoever holds the write lock.
-- Times are microseconds since 1970, lengths are microseconds.

create table "penstock_migration" (
    number integer primary key,
    name text not null,
    applied_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

-- One row: the last numbers that were given out, and what holds for all queues. Every writing verb
-- updates it first, which takes the write lock before anything is read.
create table "penstock_state" (
    single integer primary key check (single = 1),
    message_id integer not null default 0,
    fence integer not null default 0,
    turn integer not null default 0,
    history text not null default 'all' check (history in ('all', 'failures', 'none')),
    history_days integer not null default 30 check (history_days >= 1),
    backoff_first integer not null default 1000000 check (backoff_first >= 0),
    backoff_most integer not null default 300000000 check (backoff_most >= 0)
);
insert into "penstock_state" (single) values (1);

-- One row per channel: its policy and its schedule.
--   waiting    its messages without a lease, due or not
--   leased     its leases, also those that ran out and were not yet taken back
--   bands      a bit per priority that may have messages
--   next_due   none of its messages is due before; null if there is none that can start
--   open_at    before this time its rate allows no start
--   tat        theoretical arrival time of the rate limit
--   credit     what is left of its share in this round; skips: starts since the longest waiting had one
-- A channel that may start something now has a turn: its place in the ring, lowest first. One that may
-- later has a wake_at. One that is idle, full or paused has neither.
create table "penstock_channel" (
    id integer primary key,
    queue text not null,
    name text not null,
    created_at integer not null,
    weight real not null default 1 check (weight between 0.01 and 1000),
    concurrency integer check (concurrency >= 1),
    rate real check (rate between 1e-6 and 1e9),
    burst integer check (burst >= 1),
    backlog integer check (backlog >= 0),
    paused integer not null default 0,
    closing integer not null default 0,
    waiting integer not null default 0 check (waiting >= 0),
    leased integer not null default 0 check (leased >= 0),
    bands integer not null default 0,
    next_due integer,
    open_at integer,
    tat integer,
    credit real not null default 0,
    skips integer not null default 0,
    turn integer,
    wake_at integer,
    check ((rate is null) = (burst is null)),
    unique (queue, name)
);
create index "penstock_channel_ring" on "penstock_channel" (queue, turn) where turn is not null;
create index "penstock_channel_alarm" on "penstock_channel" (queue, wake_at) where wake_at is not null;
-- Those that have messages and no turn: the answer to "is anything blocked?" in one step.
create index "penstock_channel_parked" on "penstock_channel" (queue, next_due)
    where turn is null and waiting > 0;
create index "penstock_channel_closing" on "penstock_channel" (id) where closing;

-- Inserted and deleted; rewritten only when it is put back.
create table "penstock_message" (
    id integer primary key,
    channel_id integer not null,
    priority integer not null,
    due integer not null,
    published_at integer not null,
    first_published_at integer not null,
    expires_at integer,
    attempt integer not null default 0,
    spent integer not null default 0,
    max_attempts integer not null,
    kind text not null,
    key text,
    key_window integer,
    content_type text not null,
    headers text,
    state_type text,
    state blob,
    payload blob not null
);

-- Who ends messages asks here which of them have a key; usually nobody has.
create index "penstock_message_keyed" on "penstock_message" (id) where key is not null;

-- The messages without a lease, in the order in which they start.
create table "penstock_waiting" (
    channel_id integer not null,
    priority integer not null,
    due integer not null,
    message_id integer not null,
    expires_at integer,
    primary key (channel_id, priority, due, message_id)
) without rowid;
create index "penstock_waiting_expiry" on "penstock_waiting" (expires_at) where expires_at is not null;

-- One row per claim that took something. until: none of its leases ends before.
create table "penstock_claim" (
    fence integer primary key,
    until integer not null,
    claimed_at integer not null,
    worker text not null
);
create index "penstock_claim_until" on "penstock_claim" (until);

-- The right to work on a message until a time. Appended on the right: fences only rise.
create table "penstock_lease" (
    fence integer not null,
    message_id integer not null,
    channel_id integer not null,
    until integer not null,
    primary key (fence, message_id)
) without rowid;

-- A publish key in use. expires_at null: while the message lives; else until then.
create table "penstock_dedupe" (
    queue text not null,
    key text not null,
    message_id integer not null,
    expires_at integer,
    primary key (queue, key)
) without rowid;
create index "penstock_dedupe_expiry" on "penstock_dedupe" (expires_at) where expires_at is not null;

create table "penstock_dead" (
    id integer primary key,
    died_at integer not null,
    published_at integer not null,
    first_published_at integer not null,
    attempt integer not null,
    max_attempts integer not null,
    priority integer not null,
    queue text not null,
    channel text not null,
    kind text not null,
    key text,
    key_window integer,
    content_type text not null,
    headers text,
    state_type text,
    state blob,
    reason text not null,
    error_type text,
    error text,
    payload blob not null
);
create index "penstock_dead_order" on "penstock_dead" (queue, died_at, id);

create table "penstock_dead_count" (
    queue text not null,
    channel text not null,
    n integer not null,
    primary key (queue, channel)
) without rowid;

-- Who listens to events: a mailbox each, until a time; the filters are JSON lists, null matches all.
create table "penstock_listener" (
    id integer primary key autoincrement,
    until integer not null,
    read_to integer not null,
    what text,
    queues text,
    channels text,
    kinds text
);

-- What happened, for one listener each: written by the verbs, deleted by the reader. events is a JSON
-- list of [message id, queue, channel, kind], all of one statement.
create table "penstock_mail" (
    number integer primary key autoincrement,
    listener_id integer not null,
    at integer not null,
    what text not null,
    events text not null
);
create index "penstock_mail_order" on "penstock_mail" (listener_id, number);

-- One row per finished attempt, and one for each end without an attempt. Ids rise in the order of
-- commits and are never reused, so the id is the position of a reader that follows.
create table "penstock_history" (
    id integer primary key autoincrement,
    message_id integer not null,
    fence integer,
    attempt integer not null,
    first_published_at integer,
    published_at integer,
    due integer,
    claimed_at integer,
    ended_at integer not null,
    payload_size integer,
    terminal integer not null,
    dead integer not null,
    priority integer,
    queue text not null,
    channel text not null,
    kind text not null,
    worker text,
    outcome text not null,
    reason text,
    error_type text,
    error text
);
create index "penstock_history_message" on "penstock_history" (message_id);
