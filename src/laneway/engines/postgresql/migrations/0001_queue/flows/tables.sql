-- Flows: messages that wait for other messages. docs/decisions/0018-flows.md.
--
-- A node is a message of a flow, and has the message's id. One whose parents have not all been decided is not in
-- the table of messages yet: its row for the publish lies in flow_held. Messages outside of flows have nothing to do
-- with these tables: their flow_id is null.
create sequence "laneway".flow_id;

-- xid: only the transaction that created a flow adds to it from outside. The counts are as upkeep last added them up;
-- what has changed since is in flow_count. expires_at: when an ended flow is forgotten.
create table "laneway".flow (
    id bigint primary key,
    xid bigint not null,
    queue text collate "C" not null,
    name text collate "C" not null,
    created_at timestamptz not null,
    keep interval not null,
    cancelled_at timestamptz,
    ended_at timestamptz,
    expires_at timestamptz,
    held bigint not null default 0,
    live bigint not null default 0,
    dead bigint not null default 0,
    completed bigint not null default 0,
    failed bigint not null default 0,
    skipped bigint not null default 0
) with (fillfactor = 70);
-- A name is taken while its flow has not ended.
create unique index flow_name on "laneway".flow (queue, name) where ended_at is null;
create index flow_expiry on "laneway".flow (expires_at) where expires_at is not null;

-- Changes of these counts, appended: a row of the flow itself would be rewritten by everybody who ends something.
create table "laneway".flow_count (
    flow_id bigint not null,
    held bigint not null default 0,
    live bigint not null default 0,
    dead bigint not null default 0,
    completed bigint not null default 0,
    failed bigint not null default 0,
    skipped bigint not null default 0
);
create index flow_count_flow on "laneway".flow_count (flow_id);

-- state: held, live (a message), dead (a letter), completed, cancelled, lapsed, discarded or skipped (not to be run).
-- pending: parents that are not decided yet; missed: parents that were decided otherwise than by completing.
-- run_when: completed (all did), failed (one did not) or ended. died: was dead once; children that do not wait for its
-- completion were decided then.
-- fillfactor: beside its row each node needs room for one more, without new entries in the indexes: many on a page are
-- changed by one transaction, and what it replaces is in its place until it has ended.
create table "laneway".flow_node (
    id bigint primary key,
    flow_id bigint not null,
    pending integer not null,
    missed integer not null default 0,
    run_when text not null check (run_when in ('completed', 'failed', 'ended')),
    state text not null,
    died boolean not null default false,
    ended_at timestamptz,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null
) with (fillfactor = 45);
create index flow_node_flow on "laneway".flow_node (flow_id, id);

-- strict: the child waits for the parent's completion, and a dead parent holds it. place: in the order that was given.
create table "laneway".flow_edge (
    parent bigint not null,
    child bigint not null,
    strict boolean not null,
    place integer not null,
    primary key (parent, child)
);
create index flow_edge_child on "laneway".flow_edge (child, place);

-- What is published when its node is released; delay and expires_in are counted from then. adder, fence: the lease whose
-- holder added it: no node yet, becomes one when that lease completes its message. parents, run_when: its place.
create table "laneway".flow_held (
    id bigint primary key,
    flow_id bigint not null,
    adder bigint,
    fence bigint,
    parents bigint[],
    run_when text check (run_when in ('completed', 'failed', 'ended')),
    -- What cannot be added to a time would fail whoever ends the parents.
    delay interval check (delay <= interval '1000 years'),
    at timestamptz,
    expires_in interval check (expires_in <= interval '1000 years'),
    expires_at timestamptz,
    max_attempts integer not null,
    priority smallint not null,
    channel_id uuid not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    content_type text not null,
    headers jsonb,
    payload bytea not null
);
create index flow_held_adder on "laneway".flow_held (adder) where adder is not null;

-- Children of nodes that ended, or died, which are not decided yet: from this id on. There were too many for one call,
-- or somebody else came in between; upkeep goes on with them. strict: those that wait for the parent's completion; others:
-- those that do not; missed: the parent has not completed. Whoever writes a row has its parent locked.
create table "laneway".flow_undecided (
    parent bigint not null,
    strict boolean not null,
    others boolean not null,
    missed boolean not null,
    start bigint not null,
    flow_id bigint not null,
    primary key (parent, strict)
);
create index flow_undecided_flow on "laneway".flow_undecided (flow_id);

-- Flows with their counts of now. dead: nothing runs, and a dead letter holds what is left.
create view "laneway".flow_v1 as
select c.id, c.queue, c.name, c.created_at, c.cancelled_at, c.ended_at,
    case when c.live > 0 or exists (select from "laneway".flow_undecided u where u.flow_id = c.id) then 'running' when c.dead > 0 then 'dead' when c.cancelled_at is not null then 'cancelled'
        when c.failed > 0 then 'failed' else 'completed' end as state,
    c.held, c.live, c.dead, c.completed, c.failed, c.skipped
from (
    select f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at,
        (f.held + coalesce(n.held, 0))::bigint as held, (f.live + coalesce(n.live, 0))::bigint as live,
        (f.dead + coalesce(n.dead, 0))::bigint as dead, (f.completed + coalesce(n.completed, 0))::bigint as completed,
        (f.failed + coalesce(n.failed, 0))::bigint as failed, (f.skipped + coalesce(n.skipped, 0))::bigint as skipped
    from "laneway".flow f
    left join lateral (
        select sum(k.held) as held, sum(k.live) as live, sum(k.dead) as dead, sum(k.completed) as completed,
            sum(k.failed) as failed, sum(k.skipped) as skipped
        from "laneway".flow_count k where k.flow_id = f.id
    ) n on true
) c;

-- parents: the first hundred; flow_edge_v1 has all.
create view "laneway".flow_node_v1 as
select n.id, n.flow_id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when l.message_id is not null then 'leased' else 'waiting' end as state,
    n.pending, n.missed, n.ended_at,
    array(select e.parent from "laneway".flow_edge e where e.child = n.id order by e.place limit 100) as parents
from "laneway".flow_node n left join "laneway".lease l on l.message_id = n.id;

create view "laneway".flow_edge_v1 as select e.parent, e.child, e.place from "laneway".flow_edge e;

create view "laneway".flow_dead_v1 as
select d.flow_id, d.id, d.queue, d.channel, d.kind, d.died_at from "laneway".dead d where d.flow_id is not null;
