-- The private tables. SQLite has one writer at a time, so counts, limits and turns are plain columns
-- that the holder of the write lock updates in place: they are exact at every commit.
-- Times are microseconds since 1970, durations are microseconds.

create table "laneway_migration" (
    number integer primary key,
    name text not null,
    applied_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

-- One row: the last numbers that were given out, the settings of all queues, and how many of them are claimed by
-- kind. Every verb that writes updates it first, which takes the write lock before anything is read.
create table "laneway_state" (
    single integer primary key check (single = 1),
    message_id integer not null default 0,
    fence integer not null default 0,
    turn integer not null default 0,
    history text not null default 'all' check (history in ('all', 'failures', 'none')),
    history_days integer not null default 30 check (history_days >= 1),
    backoff_initial integer not null default 1000000 check (backoff_initial >= 0),
    backoff_max integer not null default 300000000 check (backoff_max >= 0),
    audit_days integer not null default 90 check (audit_days >= 1),
    by_kind integer not null default 0,
    flows integer not null default 0,
    fair integer not null default 0
);
insert into "laneway_state" (single) values (1);

-- One row per channel: its policy and its schedule.
--   waiting    its messages without a lease, due or not
--   leased     its leases, including expired ones that upkeep has not ended yet
--   bands      a bit per priority that may have messages; those from 61 on share the highest
--   next_due   no message is due before this time; null if none can start
--   open_at    its rate limit allows no start before this time
--   tat        theoretical arrival time of the rate limit
--   credit     what is left of its share of this round
--   skips      starts since the last one that went to the longest waiting message
-- A channel that can start a message now has a turn (the lowest is served first). One that can later has
-- a wake_at, also when it is paused for a time. One that is empty, full or paused for good has neither.
create table "laneway_channel" (
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
    paused_until integer,
    throttled integer not null default 0,
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
create index "laneway_channel_ring" on "laneway_channel" (queue, turn) where turn is not null;
create index "laneway_channel_alarm" on "laneway_channel" (queue, wake_at) where wake_at is not null;
-- Channels that have messages and no turn: answers "is anything blocked?" in one lookup.
create index "laneway_channel_parked" on "laneway_channel" (queue, next_due)
    where turn is null and waiting > 0;
create index "laneway_channel_timed" on "laneway_channel" (paused_until) where paused_until is not null;
create index "laneway_channel_closing" on "laneway_channel" (id) where closing;
-- Lists of channels by policy. Publish, claim and complete change none of these columns.
create index "laneway_channel_limited" on "laneway_channel" (queue, name)
    where concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused
        or closing;
create index "laneway_channel_paused" on "laneway_channel" (queue, name) where paused;
-- Its messages and leases know the channel by id only: without its row they would have no name and no
-- turn, and the next channel could get the id, with counts that do not match.
create trigger "laneway_channel_in_use" before delete on "laneway_channel"
when old.waiting > 0 or old.leased > 0
begin
    select raise(abort, 'laneway: this channel has messages: remove it with queue.channel(name).remove()');
end;

-- Queues that are fair by time (docs/decisions/0023-fair-by-time.md); laneway_state counts them. turn: seconds of worker time
-- by which a channel may get ahead of others. reached: how many seconds every channel has had that could use them, by weight.
create table "laneway_fair_queue" (
    queue text primary key,
    turn real not null check (turn > 0),
    reached real not null default 0,
    since integer not null
) without rowid;

-- A channel of such a queue that was claimed from. Seconds, by weight.
--   used, booked, cost, since   see laneway.engines.fairness.RunTime
--   ended, took, ended_at       leases that ended since then: how many, how long they took, and when the last one did
--   emptied                     whether nothing waited after the last claim
create table "laneway_fair_channel" (
    channel_id integer primary key,
    queue text not null,
    used real not null,
    booked real not null,
    cost real not null,
    since integer not null,
    ended integer not null default 0,
    took integer not null default 0,
    ended_at integer not null default 0,
    emptied integer not null
);
create index "laneway_fair_channel_order" on "laneway_fair_channel" (queue, booked);
create trigger "laneway_fair_channel_gone" after delete on "laneway_channel"
begin
    delete from "laneway_fair_channel" where channel_id = old.id;
end;

-- Inserted and deleted; updated only when the message is put back.
create table "laneway_message" (
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

-- Tells which messages have a publish key when they end; usually none has.
create index "laneway_message_keyed" on "laneway_message" (id) where key is not null;

-- Messages without a lease, in the order in which they start.
create table "laneway_waiting" (
    channel_id integer not null,
    priority integer not null,
    due integer not null,
    message_id integer not null,
    expires_at integer,
    primary key (channel_id, priority, due, message_id)
) without rowid;
create index "laneway_waiting_expiry" on "laneway_waiting" (expires_at) where expires_at is not null;

-- One row per claim that took messages. until: none of its leases ends before this time.
create table "laneway_claim" (
    fence integer primary key,
    until integer not null,
    claimed_at integer not null,
    worker text not null
);
create index "laneway_claim_until" on "laneway_claim" (until);

-- The right to work on a message until a time. Fences only rise, so rows are appended at the end.
create table "laneway_lease" (
    fence integer not null,
    message_id integer not null,
    channel_id integer not null,
    until integer not null,
    primary key (fence, message_id)
) without rowid;

-- Publish keys in use, by name: the scope in which one holds (16 characters, engines/keys.py), then the key itself.
-- In messages and dead letters too. Until expires_at; null: as long as the message exists.
-- behind: a running message that had the key before; the key's message (message_id) waits until it has ended.
-- behind_due: when the key's message is due then (docs/decisions/0017-key-modes.md).
create table "laneway_dedupe" (
    queue text not null,
    key text not null,
    message_id integer not null,
    expires_at integer,
    behind integer,
    behind_due integer,
    primary key (queue, key)
) without rowid;
create index "laneway_dedupe_expiry" on "laneway_dedupe" (expires_at) where expires_at is not null;

-- tell_at: when somebody may be told of it: null after that; later than now while somebody is being told.
create table "laneway_dead" (
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
    traceback text,
    payload blob not null,
    tell_at integer
);
create index "laneway_dead_order" on "laneway_dead" (queue, died_at, id);
-- Of all queues, the newest first.
create index "laneway_dead_time" on "laneway_dead" (died_at, id);
create index "laneway_dead_untold" on "laneway_dead" (queue, tell_at) where tell_at is not null;

create table "laneway_dead_count" (
    queue text not null,
    channel text not null,
    n integer not null,
    primary key (queue, channel)
) without rowid;

-- Listeners to events, until a time. Their filters are JSON lists, null matches all.
create table "laneway_listener" (
    id integer primary key autoincrement,
    until integer not null,
    read_to integer not null,
    what text,
    queues text,
    channels text,
    kinds text
);

-- Events for one listener: written by the verbs, deleted by the reader. events is a JSON list of
-- [message id, queue, channel, kind], all written by one statement.
create table "laneway_mail" (
    number integer primary key autoincrement,
    listener_id integer not null,
    at integer not null,
    what text not null,
    events text not null
);
create index "laneway_mail_order" on "laneway_mail" (listener_id, number);

-- One row per finished attempt, and one for each message that ended without an attempt. started_at: when
-- its handler began, if the message had waited inside a worker before; null: claimed_at. Wait and run
-- times are measured from coalesce(started_at, claimed_at). Ids rise in
-- commit order and are never reused, so a reader that follows the history uses them as its position.
create table "laneway_history" (
    id integer primary key autoincrement,
    message_id integer not null,
    fence integer,
    attempt integer not null,
    first_published_at integer,
    published_at integer,
    due integer,
    claimed_at integer,
    started_at integer,
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
create index "laneway_history_message" on "laneway_history" (message_id);

-- Subscriptions: which queues get a copy of what is published to a topic. channel and kind replace
-- those of the message; null keeps them.
create table "laneway_subscription" (
    topic text not null,
    queue text not null,
    channel text,
    kind text,
    primary key (topic, queue)
) without rowid;

-- Keys of work that handlers have done already; kept until a time.
create table "laneway_done" (
    queue text not null,
    key text not null,
    keep_until integer not null,
    primary key (queue, key)
) without rowid;
create index "laneway_done_expiry" on "laneway_done" (keep_until);

-- Shared limits: docs/decisions/0021-shared-limits.md.
--
-- One row a limit; named by a message and never set: a row without limits. tat: as in a channel. rest_until:
-- nothing starts before (a handler raised Throttled, or its breaker is open). concurrency: the number in force,
-- set_concurrency: what was set. The rest: LimitControl in limits.py.
create table "laneway_shared_limit" (
    name text primary key,
    concurrency integer check (concurrency >= 1),
    rate real check (rate between 1e-6 and 1e9),
    burst integer check (burst >= 1),
    tat integer,
    rest_until integer,
    created_at integer not null,
    set_concurrency integer check (set_concurrency >= 1),
    adapt_min integer check (adapt_min >= 1),
    adapt_max integer check (adapt_max >= adapt_min),
    adapted integer check (adapted between adapt_min and adapt_max),
    successes integer not null default 0,
    breaker_failures real check (breaker_failures > 0 and breaker_failures <= 1),
    breaker_window integer,
    breaker_minimum integer check (breaker_minimum >= 1),
    breaker_pause integer,
    opened_at integer,
    open_until integer,
    recent text,
    round integer not null default 0,
    adapt_round integer not null default 0,
    breaker_round integer not null default 0,
    check ((rate is null) = (burst is null)),
    check ((adapt_min is null) = (adapted is null)),
    check ((opened_at is null) = (open_until is null) and (opened_at is null or breaker_window is not null))
) without rowid;

-- Those that want to know how what ran behind them ended.
create index "laneway_shared_limit_controlled" on "laneway_shared_limit" (name)
    where adapt_min is not null or breaker_window is not null;

-- Who runs behind a limit. A row counts while its lease exists; the next who needs the number deletes the others.
-- outcome: how it ended or is about to end (AttemptEnd), of limits that adapt or have a breaker. round: of the limit,
-- when it started.
create table "laneway_limit_lease" (
    name text not null,
    message_id integer not null,
    fence integer not null,
    round integer not null default 0,
    outcome integer check (outcome between 1 and 5),
    ended_at integer,
    primary key (name, message_id)
) without rowid;

-- A channel that waits for a set of limits (their names, sorted, with commas between). pass: how much it has had,
-- by weight: the lowest is next. used: when it began to wait or started something. A row stays for a minute after its
-- last message, so that nobody gains by coming back.
create table "laneway_limit_lane" (
    limits text not null,
    channel_id integer not null,
    queue text not null,
    pass real not null,
    waiting integer not null,
    used integer not null,
    primary key (limits, channel_id)
) without rowid;
create index "laneway_limit_lane_order" on "laneway_limit_lane" (limits, pass) where waiting;
create index "laneway_limit_lane_idle" on "laneway_limit_lane" (used) where not waiting;
create index "laneway_limit_lane_channel" on "laneway_limit_lane" (channel_id) where waiting;

-- How far a set of limits has come: LimitClock. at: when it was written.
create table "laneway_limit_clock" (
    limits text primary key,
    points text not null,
    at integer not null
) without rowid;

-- A message that waits for its limits: put back for an hour, and made due when its turn comes (released).
create table "laneway_limit_wait" (
    message_id integer primary key,
    limits text not null,
    channel_id integer not null,
    kind text not null,
    priority integer not null,
    due integer not null,
    released integer,
    charge real not null default 0
);
create index "laneway_limit_wait_order" on "laneway_limit_wait" (limits, channel_id, priority desc, due, message_id)
    where released is null;
create index "laneway_limit_wait_released" on "laneway_limit_wait" (released) where released is not null;

-- Which sets of limits messages of a queue wait for.
create table "laneway_limit_queue" (
    queue text not null,
    limits text not null,
    primary key (queue, limits)
) without rowid;
