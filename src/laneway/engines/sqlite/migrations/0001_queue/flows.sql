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
