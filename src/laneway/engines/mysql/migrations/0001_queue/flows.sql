-- Flows: messages that wait for other messages; docs/decisions/0018-flows.md. A node is a message of a flow and has
-- its id. One whose parents have not all been decided is not in the table of messages yet: its row for the publish
-- lies in flow_held. Messages outside of flows have nothing to do with these tables: their flow_id is null.
--
-- What a call locks here it finds by whole primary keys, with numbers that the node's row counts (children, added): a
-- look at a range would lock gaps in a caller's transaction at REPEATABLE READ, and others could add nothing there.

-- The counts are as upkeep last added them up; what has changed since is in flow_count.
create table if not exists `laneway_flow` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    name varbinary(255) not null,
    created_at bigint not null,
    keep bigint not null,
    cancelled_at bigint,
    ended_at bigint,
    expires_at bigint,
    held bigint not null default 0,
    live bigint not null default 0,
    dead bigint not null default 0,
    completed bigint not null default 0,
    failed bigint not null default 0,
    skipped bigint not null default 0,
    key flow_queue (queue, id),
    key flow_expiry (expires_at)
) engine = InnoDB;

-- Names of flows that have not ended, as far as that was noted; the id is computed from queue and name.
create table if not exists `laneway_flow_name` (
    id binary(16) primary key,
    flow_id bigint not null
) engine = InnoDB;

-- Changes of the counts, appended: the row of the flow would be rewritten by everybody who ends something.
create table if not exists `laneway_flow_count` (
    id bigint auto_increment primary key,
    flow_id bigint not null,
    held bigint not null,
    live bigint not null,
    dead bigint not null,
    completed bigint not null,
    failed bigint not null,
    skipped bigint not null,
    key flow_count_flow (flow_id)
) engine = InnoDB;

-- state: held, live (a message), dead (a letter), completed, cancelled, lapsed, discarded or skipped (not to be run).
-- pending: parents that are not decided yet; missed: parents that were decided otherwise than by completing.
-- died: was dead once; children that do not wait for its completion were decided then.
-- children: edges from here. added: what the holder of the lease with the fence added, in flow_added.
create table if not exists `laneway_flow_node` (
    id bigint primary key,
    flow_id bigint not null,
    pending int not null,
    missed int not null default 0,
    children int not null default 0,
    added int not null default 0,
    added_fence bigint,
    run_when varbinary(16) not null,
    state varbinary(16) not null,
    died boolean not null default false,
    ended_at bigint,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    key flow_node_flow (flow_id, id)
) engine = InnoDB;

-- strict: the child waits for the parent's completion, and a dead parent holds it. number: from 0 for each parent;
-- place: among the parents of the child, in the order that was given.
create table if not exists `laneway_flow_edge` (
    parent bigint not null,
    number int not null,
    child bigint not null,
    strict boolean not null,
    place int not null,
    primary key (parent, number),
    key flow_edge_child (child, place)
) engine = InnoDB;

-- What is published when its node is released; delay and expires_in are counted from then.
create table if not exists `laneway_flow_held` (
    id bigint primary key,
    flow_id bigint not null,
    delay bigint,
    at bigint,
    expires_in bigint,
    expires_at bigint,
    max_attempts int not null,
    priority smallint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    content_type varbinary(1024) not null,
    headers longblob,
    payload longblob not null
) engine = InnoDB row_format = dynamic;

-- Nodes that were released and not counted yet: upkeep counts messages by their ids, and theirs are old.
create table if not exists `laneway_flow_released` (
    id bigint primary key
) engine = InnoDB;

-- What the holder of a message's lease added: no nodes yet, they become that when this lease completes the message.
-- parents: a JSON list.
create table if not exists `laneway_flow_added` (
    adder bigint not null,
    number int not null,
    id bigint not null,
    run_when varbinary(16) not null,
    parents longblob not null,
    primary key (adder, number)
) engine = InnoDB;
