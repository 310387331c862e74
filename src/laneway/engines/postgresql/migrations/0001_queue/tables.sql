-- The private tables. Nothing outside the functions of this schema reads or writes them;
-- people, reports and Spark read the views (views.sql).
--
-- Two kinds of table:
--   static    one row per thing, changed rarely: channel, setting, dedupe, dead.
--   flowing   rows are appended and deleted, never rewritten on the hot path: message, wake,
--             token, lease. Each is found by a position that only moves to the right, so that
--             dead row versions which an old snapshot keeps alive stay behind and are not read.

-- "create schema if not exists" needs the right to create one also where it exists, made by an administrator.
do $$
declare
    v_create text := 'create schema "laneway"';
begin
    if to_regnamespace('"laneway"') is not null then
        if not has_schema_privilege(to_regnamespace('"laneway"'), 'create') then
            raise insufficient_privilege using message = format(
                '%I may create nothing in this schema: as its owner run GRANT USAGE, CREATE ON SCHEMA %s TO %I',
                current_user, '"laneway"', current_user);
        end if;
    elsif has_database_privilege(current_database(), 'create') then
        execute v_create;
    else
        raise insufficient_privilege using message = format(
            '%I may not create the schema: as an administrator run CREATE SCHEMA %s AUTHORIZATION %I',
            current_user, '"laneway"', current_user);
    end if;
end
$$;

create table "laneway".migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- One row: the settings of the schema. history_changes: how often "history" was changed; what happened around a
-- change is not known for certain. max_payload: what others than the owner may store in one message.
create table "laneway".setting (
    single boolean primary key default true check (single),
    history text not null default 'all' check (history in ('all', 'failures', 'none')),
    history_days integer not null default 30 check (history_days >= 1),
    backoff_initial interval not null default '1 second' check (backoff_initial >= interval '0'),
    backoff_max interval not null default '5 minutes' check (backoff_max >= interval '0'),
    audit_days integer not null default 90 check (audit_days >= 1),
    max_payload integer not null default 1048576 check (max_payload between 1 and 268435456),
    history_changes bigint not null default 0
);
insert into "laneway".setting default values;

-- One static row per channel: its name and policy. Claims create it, publishing never does (an
-- open publish would make others wait), and claims only lock it: whoever holds this row's lock
-- owns the channel's token and wakes. The id is computed from the two names, so that a publisher needs
-- no look-up.
create table "laneway".channel (
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
    paused_until timestamptz,
    throttled boolean not null default false,
    closing boolean not null default false,
    check ((rate is null) = (burst is null))
);
-- The channels that may refuse a publish: usually none, so that the check reads one page.
create index channel_gate on "laneway".channel (id) where backlog is not null or closing;
create index channel_closing on "laneway".channel (id) where closing;
-- The same for a claim that must know how much each of many channels may start.
create index channel_bound on "laneway".channel (id) where weight <> 1 or concurrency is not null or rate is not null or paused;

-- Channels that are paused for a time, which upkeep resumes in their rows.
create index channel_timed on "laneway".channel (paused_until) where paused_until is not null;
-- To look for channels by name, and for those with a policy.
create index channel_name on "laneway".channel (queue, name);
create index channel_limited on "laneway".channel (queue, name)
    where weight <> 1 or concurrency is not null or rate is not null or backlog is not null or paused or closing;

create sequence "laneway".message_id;
-- One number a claim. No cache: with one a later claim could get a lower fence.
create sequence "laneway".fence;

-- part: of a bulk publish (staged_part). by_kind: its queue is claimed by kind, so that it is also found by its kind.
-- flow_id: null outside of flows. Bulk loads take ids from the sequence. COPY leaves out what has its default, which costs
-- less than to read it; other statements say all. The default of the three times is COPY's own begin, by when its
-- transaction has a number; other statements say theirs (write_time_v1).
-- What the indexes and the scans of claims look at comes first: to reach a column, those before it are gone through.
create table "laneway".message (
    id bigint primary key default nextval('"laneway".message_id'),
    channel_id uuid not null,
    due timestamptz not null default statement_timestamp(),
    published_at timestamptz not null default statement_timestamp(),
    first_published_at timestamptz not null default statement_timestamp(),
    attempt bigint not null default 0,
    spent integer not null default 0,
    max_attempts integer not null default 20,
    priority smallint not null default 0,
    by_kind boolean,
    part bigint,
    expires_at timestamptz,
    flow_id bigint,
    key_window interval,
    queue text collate "C" not null default 'default',
    channel text collate "C" not null default 'default',
    kind text collate "C" not null default '',
    key text collate "C",
    content_type text not null default 'application/json',
    headers jsonb,
    state_type text,
    state bytea,
    payload bytea not null
);
-- No two entries are alike: looking for some to merge, before a page is divided, would find none.
create index message_order on "laneway".message (channel_id, priority, due, id) with (deduplicate_items = off);
create index message_expiry on "laneway".message (expires_at) where expires_at is not null;
create index message_kind on "laneway".message (channel_id, kind, priority, due, id) with (deduplicate_items = off) where by_kind;

-- What a task of a bulk publish (staging/parts.sql) has loaded into the table of messages while its job is not
-- committed. As long as the part of a message is here, the message is there for nobody; the job's commit
-- deletes the row, and with that all of its messages are published at once. Its ids lie between first_id
-- and last_id, among those of others.
create table "laneway".staged_part (
    id bigint primary key,
    job text collate "C" not null,
    first_id bigint not null,
    last_id bigint not null,
    n bigint not null,
    keyed boolean not null
);

-- "Look at this channel, from this position on": n messages more (or fewer) wait there, or
-- `freed` counted leases ended; message_id is then how long their handlers took, as microseconds below zero (0: they did not begin). Appended by whoever changes a channel without owning
-- it; consumed only by the owner, who looks afterwards, so none can be lost. lane: whom it concerns: '=' and a
-- kind; '-' all kinds; '' all kinds, in a queue that is not claimed by kind.
create table "laneway".wake (
    at timestamptz not null,
    channel_id uuid not null,
    due timestamptz not null,
    message_id bigint not null,
    n bigint not null,
    freed bigint not null default 0,
    priority smallint not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    lane text collate "C" not null default ''
);
create index wake_order on "laneway".wake (queue, at);
-- Wakes of messages that may have to start before those of earlier wakes: a visit reads all of these.
create index wake_ahead on "laneway".wake (channel_id, at) where priority > 0 or due < at;
create index wake_lane on "laneway".wake (queue, lane, at) where lane <> '';

-- The schedule of a channel that has known work (or state to remember), one live row each; every
-- visit of an owner replaces it by a higher version. turn: when its turn came (in the ring), when
-- its rate allows the next start (future), or null: parked until a wake (limit full, paused, idle).
-- pri/due/mid: for each priority that has work, the position of the last message taken. lanes: the lane of each
-- position, null in queues that are not claimed by kind. slots: the lanes that have work, sorted; the fourth is '*'
-- if there are more than four. turns: when the turn of each came; the token's own turn is the first of them.
-- used .. since: only in queues that are fair by time (claim_pace_v1), else null.
create table "laneway".token (
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
    mid bigint[] not null,
    lanes text[] collate "C",
    slots text[] collate "C",
    turns timestamptz[],
    used double precision,
    booked double precision,
    cost double precision,
    since timestamptz
);
-- Read backwards: the live version is the rightmost, dead ones lie behind it.
create unique index token_latest on "laneway".token (channel_id, version);
create index token_ring on "laneway".token (queue, turn) where turn is not null;
create index token_parked on "laneway".token (queue) where turn is null and n <> 0;
create index token_booked on "laneway".token (queue, booked) where booked is not null and turn is not null;
create index token_slot1 on "laneway".token (queue, (slots[1]), (turns[1])) where slots[1] is not null and turns[1] is not null;
create index token_slot2 on "laneway".token (queue, (slots[2]), (turns[2])) where slots[2] is not null and turns[2] is not null;
create index token_slot3 on "laneway".token (queue, (slots[3]), (turns[3])) where slots[3] is not null and turns[3] is not null;
create index token_slot4 on "laneway".token (queue, (slots[4]), (turns[4])) where slots[4] is not null and turns[4] is not null;

-- Queues from which somebody claims by kind (docs/decisions/0016-claims-by-kind.md). It has no index: while there is
-- none the table has no pages, so that the look of a publish or a claim reads none. settled: no wake without a lane
-- can come any more; horizon: a transaction number that is higher than those of all who did not see the row (see
-- by_kind_v1).
create table "laneway".kind_queue (
    queue text collate "C" not null,
    horizon bigint,
    settled boolean not null default false
);

create type "laneway".positions_v1 as (pri smallint[], due timestamptz[], mid bigint[]);
-- What a token says of its lanes (claim_visit_kinds_v1).
create type "laneway".lanes_v1 as (lanes text[], pri smallint[], due timestamptz[], mid bigint[]);
create type "laneway".slots_v1 as (slots text[], turns timestamptz[]);

-- The channels that a claim owns (claim_own_v1).
create type "laneway".owned_v1 as (
    channels uuid[],   -- their ids, {} if none
    rows tid[],        -- the addresses of their rows
    queues text[],     -- their queues
    plain boolean,     -- none of them has a weight or a limit or is paused
    listeners boolean  -- somebody listens to events
);

-- A row of claim's answer: a message (times as seconds since 1970), or the last one, which has no id.
create type "laneway".claimed_v1 as (
    id bigint, fence bigint, queue text, channel text, kind text, priority smallint, attempt bigint,
    max_attempts integer, due double precision, published_at double precision,
    first_published_at double precision, expires_at double precision, key text, content_type text,
    headers jsonb, state_type text, state bytea, payload bytea, spent integer,
    answer text, claimed_at timestamptz, until timestamptz, look_again timestamptz,
    turn_floor timestamptz, wake_floor timestamptz,
    open_xids bigint[], open_turns timestamptz[], open_wakes timestamptz[], contended boolean, life bigint
);

-- What a claim's scan found (claim_scan_v1).
create type "laneway".scan_v1 as (
    channels uuid[],         -- which come next, in serving order; null: none
    waiting bigint[],        -- how many messages wait in each
    new uuid[],              -- those that have no row in channel yet
    total bigint,            -- how many messages wait in all of them
    yield bigint,            -- how many of these one visit each can start
    wakes tid[],             -- the addresses of the wakes that were read
    plain boolean,           -- none of these wakes tells of a priority, a cancelled message or a freed slot
    unread boolean,          -- there may be more wakes than were read
    ring_cut boolean,        -- there may be more of the ring than was read
    last timestamptz,        -- the position of the last channel that is to be served
    part integer,            -- the part of the channels that was scanned; null: all
    turn_from timestamptz,   -- where the scan began: in the ring and
    wake_from timestamptz,   -- in the wakes
    turn_floor timestamptz,  -- where the live part begins: of the ring and
    wake_floor timestamptz   -- of the wakes
);

-- Queues that are fair by time (docs/decisions/0023-fair-by-time.md). It has no index: while there is none the table has
-- no pages, so that the look of a claim reads none. turn: seconds of worker time by which a channel may get ahead of
-- others. reached: how many seconds every channel has had that could use them, by weight; never falls.
create table "laneway".fair_queue (
    queue text collate "C" not null,
    turn double precision not null check (turn > 0),
    reached double precision not null default 0,
    since timestamptz not null
);

-- The right to work on a message until a time. counted: the claim charged it to the channel's
-- concurrency or time, so its end leaves a wake.
create table "laneway".lease (
    message_id bigint primary key,
    fence bigint not null,
    until timestamptz not null,
    claimed_at timestamptz not null,
    channel_id uuid not null,
    counted boolean not null,
    worker text not null
);
create index lease_until on "laneway".lease (until);

-- A lease that another transaction had locked while its channel got a limit: charged to the channel, and
-- settled by upkeep once it is known whether the lease still exists.
create table "laneway".stray (
    message_id bigint not null,
    fence bigint not null,
    channel_id uuid not null,
    queue text collate "C" not null,
    channel text collate "C" not null
);

-- A publish key in use, by its name (key_names_v1); in messages and dead letters too. expires_at null: until the message ends; else until then. behind: a running message that had
-- the key before; the key's message (message_id) waits until it has ended, and is due at behind_due then
-- (docs/decisions/0017-key-modes.md).
create table "laneway".dedupe (
    queue text collate "C" not null,
    key text collate "C" not null,
    message_id bigint not null,
    expires_at timestamptz,
    behind bigint,
    behind_due timestamptz,
    primary key (queue, key)
);
create index dedupe_expiry on "laneway".dedupe (expires_at) where expires_at is not null;

-- tell_at: when somebody may be told of it: null after that; later than now while somebody is being told.
create table "laneway".dead (
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
    traceback text,
    payload bytea not null,
    flow_id bigint,
    tell_at timestamptz
);
create index dead_order on "laneway".dead (queue, died_at, id);
-- Of all queues, the newest first.
create index dead_time on "laneway".dead (died_at, id);
create index dead_flow on "laneway".dead (flow_id, id) where flow_id is not null;
create index dead_untold on "laneway".dead (queue, tell_at) where tell_at is not null;

-- Changes of the number of dead letters, appended; upkeep adds them to the totals.
create table "laneway".dead_count (
    queue text collate "C" not null,
    channel text collate "C" not null,
    n bigint not null
);
create table "laneway".dead_total (
    queue text collate "C" not null,
    channel text collate "C" not null,
    n bigint not null,
    primary key (queue, channel)
);
create index dead_total_empty on "laneway".dead_total (queue) where n = 0;

-- One row per finished attempt, and one for each end without an attempt (cancelled, lapsed,
-- discarded, redriven, stale). started_at: when its handler began, if the message had waited inside a worker before; null: claimed_at. Wait and run
-- times are measured from coalesce(started_at, claimed_at).
-- xid is the settled watermark: a reader that takes rows with
-- xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint in (xid, id) order misses none. (A
-- bigint, because xid8 cannot be indexed by block ranges.)
create sequence "laneway".history_id;
create table "laneway".history (
    id bigint not null default nextval('"laneway".history_id'),
    xid bigint not null default pg_current_xact_id()::text::bigint,
    message_id bigint not null,
    fence bigint,
    attempt bigint not null,
    first_published_at timestamptz,
    published_at timestamptz,
    due timestamptz,
    claimed_at timestamptz,
    started_at timestamptz,
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
create index history_message on "laneway".history (message_id);
-- Autosummarize: a reader of what is new would read all that vacuum has not been at yet.
create index history_settled on "laneway".history using brin (xid) with (pages_per_range = 128, autosummarize = on);
-- Rows of a day whose partition does not exist (yet) are never refused.
create table "laneway".history_other partition of "laneway".history default;

-- Sleeping workers that want to be notified when a message comes to their queue, until a time; see
-- notify_workers_v1. Read by `until`, so that dead row versions which an old snapshot keeps are not read.
-- A crash of the server empties it: those workers poll until they sleep again. kinds: which they wait for; null: all.
create unlogged table "laneway".sleeper (
    until timestamptz not null,
    queue text collate "C" not null,
    worker text collate "C" not null,
    kinds text[] collate "C"
);
create index sleeper_until on "laneway".sleeper (until);

-- Listeners for events: a mailbox each, until a time; null matches all. Read by `until`, as sleeper is.
-- A crash of the server empties it, and hear_v1 then answers that events may be missing.
create sequence "laneway".listener_id;
create unlogged table "laneway".listener (
    until timestamptz not null,
    id bigint not null,
    read_to bigint not null,
    what text[],
    queues text[],
    channels text[],
    kinds text[]
);
create index listener_until on "laneway".listener (until);

-- Events, each row for one listener: appended by the verbs, deleted by the reader, so that no order of
-- commits can hide an event. One row stands for all messages of a statement.
create sequence "laneway".mail_number;
create unlogged table "laneway".mail (
    listener_id bigint not null,
    number bigint not null,
    at timestamptz not null,
    what text not null,
    ids bigint[] not null,
    queues text[] not null,
    channels text[] not null,
    kinds text[] not null
);
create index mail_order on "laneway".mail (listener_id, number);

-- The flowing tables need vacuum often: by the number of dead rows, not by a share of the table.
alter table "laneway".wake set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "laneway".token set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "laneway".lease set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
alter table "laneway".message set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
