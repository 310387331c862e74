-- name: live_flow
-- $1: queue, $2: name. The flow of this name that has not ended.
select id, held + live + dead from "laneway_flow" where queue = $1 and name = $2 and ended_at is null

-- name: end_flow
-- $1: id, $2: now.
update "laneway_flow" set ended_at = $2, expires_at = $2 + keep where id = $1

-- name: add_flow
-- $1: queue, $2: name, $3: now, $4: keep, $5: held, $6: live.
insert into "laneway_flow" (queue, name, created_at, keep, held, live) values ($1, $2, $3, $4, $5, $6) returning id

-- name: add_nodes
-- $1 and $2: the first and the last id. What is held of a new flow, whose edges are there.
insert into "laneway_flow_node" (id, flow_id, pending, run_when, state, queue, channel, kind)
select h.id, h.flow_id, h.parents, h.run_when, iif(h.parents, 'held', 'live'), h.queue, h.channel, h.kind
from (
    select id, flow_id, run_when, queue, channel, kind,
        (select count(*) from "laneway_flow_edge" e where e.child = "laneway_flow_held".id) as parents
    from "laneway_flow_held" where id between $1 and $2) h

-- name: add_edge
-- $1: parent, $2: child, $3: strict, $4: place.
insert into "laneway_flow_edge" (parent, child, strict, place) values ($1, $2, $3, $4)

-- name: add_held
-- $1..$18: the columns of flow_held.
insert into "laneway_flow_held" (
    id, flow_id, adder, fence, parents, run_when, queue, channel, kind, content_type, headers, priority, delay, at,
    expires_in, expires_at, max_attempts, payload)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)

-- name: add_plain_held
-- $1..$10: of one without headers, delay and expiry.
insert into "laneway_flow_held" (
    id, flow_id, run_when, queue, channel, kind, content_type, priority, max_attempts, payload)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- name: held_lease_flow
-- $1: message, $2: fence. If it is leased under this fence: its flow, or null.
select (select n.flow_id from "laneway_flow_node" n where n.id = l.message_id)
from "laneway_lease" l where l.fence = $2 and l.message_id = $1

-- name: delete_stale_stage
-- $1: message, $2: fence. What earlier attempts added.
delete from "laneway_flow_held" where adder = $1 and fence <> $2

-- name: known_nodes
-- $1: ids, $2: flow, $3: message, $4: fence. Those that a node of this flow may come after.
select n.id from json_each($1) j cross join "laneway_flow_node" n where n.id = j.value and n.flow_id = $2
union
select h.id from json_each($1) j cross join "laneway_flow_held" h where h.id = j.value and h.adder = $3 and h.fence = $4

-- name: parents
-- $1: message.
select n.id, n.kind, n.state from "laneway_flow_edge" e cross join "laneway_flow_node" n
where e.child = $1 and n.id = e.parent order by e.place

-- name: flows
-- $1: queue, null for all; $2: the id of the last one seen, or null; $3: how many.
select id, queue, name, created_at, cancelled_at, ended_at,
    case when live > 0 or exists (select 1 from "laneway_flow_undecided" u where u.flow_id = "laneway_flow".id) then 'running' when dead > 0 then 'dead' when cancelled_at is not null then 'cancelled'
        when failed > 0 then 'failed' else 'completed' end,
    held, live, dead, completed, failed, skipped
from "laneway_flow"
where ($1 is null or queue = $1) and ($2 is null or id < $2)
order by id desc limit $3

-- name: flow
-- $1: id.
select id, queue, name, created_at, cancelled_at, ended_at,
    case when live > 0 or exists (select 1 from "laneway_flow_undecided" u where u.flow_id = "laneway_flow".id) then 'running' when dead > 0 then 'dead' when cancelled_at is not null then 'cancelled'
        when failed > 0 then 'failed' else 'completed' end,
    held, live, dead, completed, failed, skipped
from "laneway_flow" where id = $1

-- name: flow_nodes
-- $1: flow, $2: the id of the last one seen, $3: how many.
select n.id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when w.message_id is null then 'leased' else 'waiting' end, n.ended_at,
    (select json_group_array(e.parent) from (
        select k.parent from "laneway_flow_edge" k where k.child = n.id order by k.place limit 100) e), n.pending
from "laneway_flow_node" n left join "laneway_message" m on m.id = n.id
left join "laneway_waiting" w on w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
where n.flow_id = $1 and n.id > $2 order by n.id limit $3

-- name: flow_place
-- $1: message. Its flow, and the node.
select n.flow_id, n.id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when w.message_id is null then 'leased' else 'waiting' end, n.ended_at,
    (select json_group_array(e.parent) from (
        select k.parent from "laneway_flow_edge" k where k.child = n.id order by k.place limit 100) e), n.pending
from "laneway_flow_node" n left join "laneway_message" m on m.id = n.id
left join "laneway_waiting" w on w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
where n.id = $1

-- name: node_links
-- $1: message, $2: how many of each side. What it came after, and what comes after it.
select l.side, n.id, n.queue, n.channel, n.kind,
    case when n.state <> 'live' then n.state when w.message_id is null then 'leased' else 'waiting' end
from (
    select * from (select 'parent' as side, e.parent as id, e.place as place from "laneway_flow_edge" e
        where e.child = $1 order by e.place limit $2)
    union all
    select * from (select 'child', e.child, 0 from "laneway_flow_edge" e
        where e.parent = $1 order by e.child limit $2)
) l cross join "laneway_flow_node" n on n.id = l.id
left join "laneway_message" m on m.id = n.id
left join "laneway_waiting" w on w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
order by l.side, l.place, n.id

-- name: flows_with_dead
-- $1: how many. From one flow to the next, however many dead letters each has.
with recursive found (id, n) as (
    select * from (select n.flow_id, 1 from "laneway_flow_node" n where n.state = 'dead' order by n.flow_id limit 1)
    union all
    select (select n.flow_id from "laneway_flow_node" n where n.state = 'dead' and n.flow_id > f.id
        order by n.flow_id limit 1), f.n + 1
    from found f where f.id is not null and f.n < $1
)
select v.id, v.queue, v.name, v.created_at, v.cancelled_at, v.ended_at,
    case when v.live > 0 or exists (select 1 from "laneway_flow_undecided" u where u.flow_id = v.id) then 'running' when v.dead > 0 then 'dead' when v.cancelled_at is not null then 'cancelled'
        when v.failed > 0 then 'failed' else 'completed' end,
    v.held, v.live, v.dead, v.completed, v.failed, v.skipped
from found f cross join "laneway_flow" v where v.id = f.id order by f.n

-- name: dead_nodes
-- $1: flow, $2: how many.
select n.id, n.queue, n.channel, n.kind, n.ended_at from "laneway_flow_node" n
where n.flow_id = $1 and n.state = 'dead' order by n.id limit $2

-- name: mark_cancelled
-- $1: flow, $2: now.
update "laneway_flow" set cancelled_at = $2 where id = $1 and cancelled_at is null and ended_at is null

-- name: open_nodes
-- $1: flow. Its nodes that have not ended.
select id, flow_id, pending, missed, run_when, state, died from "laneway_flow_node"
where flow_id = $1 and state in ('held', 'live', 'dead') order by id
