-- name: publish_flow
-- $1: a flow that this transaction created, or null; $2: queue, $3: name, $4: how long it is kept after its end;
-- $5: when, as an array; $6..$8: parents, children and places of the edges; $9..$20: the columns of Draft without the
-- keys as arrays, null where none has a value; $21: now.
select flow_id, ids, status
from "laneway".publish_flow_v1(
    CAST($1 AS bigint), CAST($2 AS text), CAST($3 AS text), CAST($4 AS interval), CAST($5 AS text[]),
    CAST($6 AS bigint[]), CAST($7 AS integer[]), CAST($8 AS integer[]),
    CAST($9 AS bytea[]), CAST($10 AS text[]), CAST($11 AS text[]), CAST($12 AS text[]), CAST($13 AS text[]),
    coalesce(CAST($14 AS text[]), '{}'), CAST($15 AS smallint[]),
    coalesce(CAST($16 AS interval[]), '{}'), coalesce(CAST($17 AS timestamptz[]), '{}'),
    coalesce(CAST($18 AS interval[]), '{}'), coalesce(CAST($19 AS timestamptz[]), '{}'),
    CAST($20 AS integer[]), CAST($21 AS timestamptz))

-- name: stage_nodes
-- $1: message, $2: fence; $3: when, as an array; $4..$6: the edges; $7..$18: the columns of Draft as in publish_flow.
select ids, status
from "laneway".stage_nodes_v1(
    CAST($1 AS bigint), CAST($2 AS bigint), CAST($3 AS text[]),
    CAST($4 AS bigint[]), CAST($5 AS integer[]), CAST($6 AS integer[]),
    CAST($7 AS bytea[]), CAST($8 AS text[]), CAST($9 AS text[]), CAST($10 AS text[]), CAST($11 AS text[]),
    coalesce(CAST($12 AS text[]), '{}'), CAST($13 AS smallint[]),
    coalesce(CAST($14 AS interval[]), '{}'), coalesce(CAST($15 AS timestamptz[]), '{}'),
    coalesce(CAST($16 AS interval[]), '{}'), coalesce(CAST($17 AS timestamptz[]), '{}'),
    CAST($18 AS integer[]))

-- name: parents
-- $1: message.
select id, kind, state from "laneway".parents_v1(CAST($1 AS bigint))

-- name: flows
-- $1: queue, null for all; $2: the id of the last one seen, or null; $3: how many.
select id, queue, name, created_at, cancelled_at, ended_at, state, held, live, dead, completed, failed, skipped
from "laneway".flow_v1
where (CAST($1 AS text) is null or queue = CAST($1 AS text)) and (CAST($2 AS bigint) is null or id < CAST($2 AS bigint))
order by id desc limit CAST($3 AS integer)

-- name: flow
-- $1: id.
select id, queue, name, created_at, cancelled_at, ended_at, state, held, live, dead, completed, failed, skipped
from "laneway".flow_v1 where id = CAST($1 AS bigint)

-- name: flow_nodes
-- $1: flow, $2: the id of the last one seen, $3: how many.
select id, queue, channel, kind, run_when, state, ended_at, parents, pending
from "laneway".flow_node_v1 where flow_id = CAST($1 AS bigint) and id > CAST($2 AS bigint)
order by id limit CAST($3 AS integer)

-- name: flow_place
-- $1: message. Its flow, and the node.
select flow_id, id, queue, channel, kind, run_when, state, ended_at, parents, pending
from "laneway".flow_node_v1 where id = CAST($1 AS bigint)

-- name: node_links
-- $1: message, $2: how many of each side. What it came after, and what comes after it. Each node by its id: joined,
-- it may be read with all others, where the planner knows little of a new flow.
select l.side, n.id, n.queue, n.channel, n.kind, n.state
from (
    (select 'parent' as side, e.parent as id, e.place from "laneway".flow_edge_v1 e
        where e.child = CAST($1 AS bigint) order by e.place limit CAST($2 AS integer))
    union all
    (select 'child', e.child, 0 from "laneway".flow_edge_v1 e
        where e.parent = CAST($1 AS bigint) order by e.child limit CAST($2 AS integer))
) l cross join lateral (select k.* from "laneway".flow_node_v1 k where k.id = l.id offset 0) n
order by l.side, l.place, n.id

-- name: flows_with_dead
-- $1: how many. From one flow to the next, however many dead letters each has.
with recursive found (id, n) as (
    (select d.flow_id, 1 from "laneway".flow_dead_v1 d order by d.flow_id limit 1)
    union all
    select (select d.flow_id from "laneway".flow_dead_v1 d where d.flow_id > f.id order by d.flow_id limit 1), f.n + 1
    from found f where f.id is not null and f.n < CAST($1 AS integer)
)
select v.id, v.queue, v.name, v.created_at, v.cancelled_at, v.ended_at, v.state, v.held, v.live, v.dead, v.completed,
    v.failed, v.skipped
from found f cross join lateral (select k.* from "laneway".flow_v1 k where k.id = f.id offset 0) v order by f.n

-- name: dead_nodes
-- $1: flow, $2: how many.
select id, queue, channel, kind, died_at from "laneway".flow_dead_v1
where flow_id = CAST($1 AS bigint) order by id limit CAST($2 AS integer)

-- name: cancel_flow
-- $1: flow, $2: now.
select id, state from "laneway".cancel_flow_v1(CAST($1 AS bigint), CAST($2 AS timestamptz))
