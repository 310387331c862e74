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
    key_scope text not null check (key_scope in ('kind', 'channel', 'queue')),
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
    priority, headers, content_type, payload, expires_in, max_attempts, key_scope, anchor, paused, next_at,
    look_at, last_at, fired, error, revision
from "laneway_schedule";

-- Claims of some kinds only: docs/decisions/0016-claims-by-kind.md. In queues that nobody claims by kind all
-- three tables stay empty, and no verb reads or writes them.

-- Queues that are claimed by kind. What waited before the first such claim is moved in steps, by message id:
-- moved_to is the last id that was looked at, move_end the last one that there was. ready: all is moved, the
-- lanes are there. (The state counts these queues.)
create table "laneway_kind_queue" (
    queue text primary key,
    moved_to integer not null,
    move_end integer not null,
    ready integer not null
) without rowid;

-- What waits in such queues, a second time: by kind.
create table "laneway_kind_waiting" (
    channel_id integer not null,
    kind text not null,
    priority integer not null,
    due integer not null,
    message_id integer not null,
    expires_at integer,
    primary key (channel_id, kind, priority, due, message_id)
) without rowid;

-- One row for each kind of which messages wait in a channel. Its columns are what those of the same names are
-- to a channel, for claims of this kind; limits are the channel's.
create table "laneway_lane" (
    channel_id integer not null,
    kind text not null,
    queue text not null,
    waiting integer not null,
    bands integer not null,
    next_due integer,
    credit real not null default 0,
    skips integer not null default 0,
    turn integer,
    wake_at integer,
    primary key (channel_id, kind)
) without rowid;
create index "laneway_lane_ring" on "laneway_lane" (queue, kind, turn) where turn is not null;
create index "laneway_lane_alarm" on "laneway_lane" (queue, kind, wake_at) where wake_at is not null;
create index "laneway_lane_parked" on "laneway_lane" (queue, kind, next_due) where turn is null;

-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table "laneway_result" (
    message_id integer primary key,
    ended_at integer not null,
    expires_at integer not null,
    queue text not null,
    channel text not null,
    kind text not null,
    outcome text not null,
    reason text,
    error_type text,
    error text,
    content_type text,
    payload blob
);
create index "laneway_result_expiry" on "laneway_result" (expires_at);

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table "laneway_progress" (
    message_id integer primary key,
    fence integer not null,
    at integer not null,
    share real,
    note text
);
create index "laneway_progress_at" on "laneway_progress" (at);

-- Flows: messages that wait for other messages. A node is a message of a flow and has its id; one whose parents have
-- not all been decided is not in the table of messages yet: its row for the publish lies in "laneway_flow_held".

-- state.flows says how many there are; while there are none, no verb looks at these tables.
create table "laneway_flow" (
    id integer primary key,
    queue text not null,
    name text not null,
    created_at integer not null,
    keep integer not null,
    cancelled_at integer,
    ended_at integer,
    expires_at integer,
    held integer not null default 0,
    live integer not null default 0,
    dead integer not null default 0,
    completed integer not null default 0,
    failed integer not null default 0,
    skipped integer not null default 0
);
-- A name is taken while its flow has not ended.
create unique index "laneway_flow_name" on "laneway_flow" (queue, name) where ended_at is null;
-- Those that have ended, which upkeep notes.
create index "laneway_flow_done" on "laneway_flow" (id) where ended_at is null and held = 0 and live = 0 and dead = 0;
create index "laneway_flow_expiry" on "laneway_flow" (expires_at) where expires_at is not null;

-- state: held, live (a message), dead (a letter), completed, cancelled, lapsed, discarded or skipped.
-- pending: parents that are not decided yet; missed: parents that were decided otherwise than by completing.
-- died: was dead once; children that do not wait for its completion were decided then.
create table "laneway_flow_node" (
    id integer primary key,
    flow_id integer not null,
    pending integer not null,
    missed integer not null default 0,
    run_when text not null check (run_when in ('completed', 'failed', 'ended')),
    state text not null,
    died integer not null default 0,
    ended_at integer,
    queue text not null,
    channel text not null,
    kind text not null
);
create index "laneway_flow_node_flow" on "laneway_flow_node" (flow_id, id);
create index "laneway_flow_node_dead" on "laneway_flow_node" (flow_id, id) where state = 'dead';

-- strict: the child waits for the parent's completion, and a dead parent holds it.
create table "laneway_flow_edge" (
    parent integer not null,
    child integer not null,
    strict integer not null,
    place integer not null,
    primary key (parent, child)
) without rowid;
create index "laneway_flow_edge_child" on "laneway_flow_edge" (child, place);

-- What is published when its node is released; delay and expires_in are counted from then. adder, fence: the lease whose
-- holder added it: no node yet, becomes one when that lease completes its message. parents, run_when: its place.
create table "laneway_flow_held" (
    id integer primary key,
    flow_id integer not null,
    adder integer,
    fence integer,
    parents text,
    run_when text,
    queue text not null,
    channel text not null,
    kind text not null,
    content_type text not null,
    headers text,
    priority integer not null,
    delay integer,
    at integer,
    expires_in integer,
    expires_at integer,
    max_attempts integer not null,
    payload blob not null
);
create index "laneway_flow_held_adder" on "laneway_flow_held" (adder) where adder is not null;

-- Children of nodes that ended, or died, which are not decided yet: from this id on. There were too many for one call;
-- upkeep goes on with them. strict: those that wait for the parent's completion; others: those that do not; missed: the
-- parent has not completed.
create table "laneway_flow_undecided" (
    parent integer not null,
    strict integer not null,
    others integer not null,
    missed integer not null,
    start integer not null,
    flow_id integer not null,
    primary key (parent, strict)
) without rowid;
create index "laneway_flow_undecided_flow" on "laneway_flow_undecided" (flow_id);
