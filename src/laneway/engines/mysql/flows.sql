-- Statements on nodes, edges and what is held look rows up by whole primary keys: see the migration.

-- name: reach_nodes
-- $1: (node, number), $2: how many edges of each, from that number on. What was added by their holders, their edges, and
-- what the children are now: as one text, which is cheaper for drivers in Python. Only reads, to know what to lock.
select concat_ws(',', p.id, p.flow_id, p.added, e.child, e.strict, e.number, c.state, c.run_when, c.missed)
from $1:pairs x straight_join `laneway_flow_node` p force index (primary) on p.id = x.id
left join `laneway_flow_edge` e force index (primary) on e.parent = p.id and e.number >= x.fence and e.number <= x.fence + $2
left join `laneway_flow_node` c force index (primary) on c.id = e.child

-- name: reach_far
-- $1: node, $2 and $3: the first and the last number. The same for one node.
select concat_ws(',', p.id, p.flow_id, p.added, e.child, e.strict, e.number, c.state, c.run_when, c.missed)
from `laneway_flow_node` p force index (primary)
left join `laneway_flow_edge` e force index (primary) on e.parent = $1 and e.number between $2 and $3
left join `laneway_flow_node` c force index (primary) on c.id = e.child
where p.id = $1

-- name: lock_nodes
-- $1: ids in order. How many, and all of them as one text, which is cheaper for drivers in Python; a fence may be missing
-- at the end of a node. A caller's session may allow short texts only.
/*M!100300 set statement group_concat_max_len = 16777216 for */
select /*+ set_var(group_concat_max_len = 16777216) */
    count(*), group_concat(concat_ws(',', n.id, n.flow_id, n.pending, n.missed, n.run_when, n.state, n.died, n.children,
        n.added, n.added_fence), ';' separator '')
from $1:ids x straight_join `laneway_flow_node` n force index (primary) on n.id = x.id
for update

-- name: late_edges
-- $1: (parent, number), locked by us.
select e.parent, e.child, e.strict, e.number
from $1:pairs x straight_join `laneway_flow_edge` e force index (primary) on e.parent = x.id and e.number = x.fence
lock in share mode

-- name: undecided_of
-- $1: (node, strict). What is left of these nodes.
select u.parent, u.strict, u.others, u.missed, u.start, u.flow_id
from $1:pairs x straight_join `laneway_flow_undecided` u force index (primary) on u.parent = x.id and u.strict = x.fence
lock in share mode

-- name: undecided_rows
-- $1: how many. What the ends of nodes have left.
select parent, strict, others, missed, start, flow_id from `laneway_flow_undecided` order by parent limit $1

-- name: set_undecided
-- $1: rows.
insert into `laneway_flow_undecided` (parent, strict, others, missed, start, flow_id) values $1...
on duplicate key update start = values(start)

-- name: delete_undecided
-- $1: (node, strict).
delete u from $1:pairs x
straight_join `laneway_flow_undecided` u force index (primary) on u.parent = x.id and u.strict = x.fence

-- name: lock_flows_shared
-- $1: ids in order. Those that add nodes; which were cancelled is known until our end.
select f.id, f.cancelled_at is not null
from $1:ids x straight_join `laneway_flow` f force index (primary) on f.id = x.id
lock in share mode

-- name: added_parents
-- $1: messages. Only reads.
select a.parents from $1:ids x straight_join `laneway_flow_added` a force index (primary) on a.adder = x.id

-- name: added_rows
-- $1: (message, number): what their holders added.
select a.adder, a.number, a.id, a.run_when, a.parents
from $1:pairs x straight_join `laneway_flow_added` a force index (primary) on a.adder = x.id and a.number = x.fence
for update

-- name: add_added_nodes
-- $1: (message, number): what their holders added become nodes. Their counts are written afterwards.
insert into `laneway_flow_node` (id, flow_id, pending, run_when, state, queue, channel, kind)
select h.id, h.flow_id, 0, a.run_when, 'held', h.queue, h.channel, h.kind
from $1:pairs x straight_join `laneway_flow_added` a force index (primary) on a.adder = x.id and a.number = x.fence
straight_join `laneway_flow_held` h force index (primary) on h.id = a.id

-- name: delete_added
-- $1: (message, number).
delete a from $1:pairs x
straight_join `laneway_flow_added` a force index (primary) on a.adder = x.id and a.number = x.fence

-- name: set_added
-- $1: node, locked by us, $2: how many were added, $3: under which fence.
update `laneway_flow_node` set added = $2, added_fence = $3 where id = $1

-- name: nothing_added
-- $1: nodes, locked by us.
update $1:ids x straight_join `laneway_flow_node` n force index (primary) on n.id = x.id
set n.added = 0, n.added_fence = null

-- name: set_nodes
-- $1: (node, pending, missed, children, state, 1 if that is another one), locked by us, $2: now.
update $1:nodes x straight_join `laneway_flow_node` n force index (primary) on n.id = x.id
set n.pending = x.pending, n.missed = x.missed, n.children = x.children, n.state = x.state,
    n.ended_at = case when x.turned = 0 then n.ended_at when x.state = 'live' then 0 else $2 end,
    n.died = n.died or x.state = 'dead'

-- name: set_alike_nodes
-- $1: nodes, locked by us, all with these: $2: pending, $3: missed, $4: state, $5: 1 if that is another one, $6: now.
update `laneway_flow_node` force index (primary)
set pending = $2, missed = $3, state = $4, died = died or $4 = 'dead',
    ended_at = case when $5 = 0 then ended_at when $4 = 'live' then 0 else $6 end
where id in ($1:numbers)

-- name: add_flow_counts
-- $1: rows.
insert into `laneway_flow_count` (flow_id, held, live, dead, completed, failed, skipped) values $1...

-- name: lock_held
-- $1: ids of nodes, locked by us, $2: now. A row for those that are alike: how many, their ids, what they have in common,
-- numbers as one text, a null as nothing; the last two: how many queues are claimed by kind, and how many listen to events.
/*M!100300 set statement group_concat_max_len = 16777216 for */
select /*+ set_var(group_concat_max_len = 16777216) */ count(*), group_concat(h.id, ';' separator ''),
    concat_ws(',', h.priority, ifnull(h.delay, ''), ifnull(h.at, ''), ifnull(h.expires_in, ''), ifnull(h.expires_at, ''),
        (select t.by_kind from `laneway_turnstile` t force index (primary) where t.name = 'pause'),
        (select count(*) from `laneway_listener` l where l.until > $2)),
    h.queue, h.channel, h.kind
from $1:ids x straight_join `laneway_flow_held` h force index (primary) on h.id = x.id
group by h.queue, h.channel, h.kind, h.priority, h.delay, h.at, h.expires_in, h.expires_at
for update

-- name: release_held
-- $1: ids of held nodes, locked by us, $2: now.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
    queue, channel, kind, content_type, headers, payload, flow_id)
select h.id, unhex(substr(sha2(concat(octet_length(h.queue), ':', h.queue, h.channel), 256), 1, 32)),
    coalesce(h.at, $2 + h.delay, $2), $2, $2, coalesce(h.expires_at, $2 + h.expires_in), h.max_attempts, h.priority,
    h.queue, h.channel, h.kind, h.content_type, h.headers, h.payload, h.flow_id
from $1:ids x straight_join `laneway_flow_held` h force index (primary) on h.id = x.id

-- name: add_released_nodes
-- $1: rows. Those who count messages by their ids look at these again.
insert into `laneway_flow_released` (n, ids) values $1...

-- name: delete_held
-- $1: ids.
delete h from $1:ids x straight_join `laneway_flow_held` h force index (primary) on h.id = x.id

-- name: flow_of_name
-- $1: the id of a name. Its flow, what of it has not ended, and how this transaction reads. Only reads.
select t.flow_id, (select f.held + f.live + f.dead from `laneway_flow` f force index (primary) where f.id = t.flow_id)
    + coalesce((select sum(k.held + k.live + k.dead) from `laneway_flow_count` k force index (flow_count_flow)
        where k.flow_id = t.flow_id), 0),
    /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */
from `laneway_flow_name` t force index (primary) where t.id = $1

-- name: take_flow_name
-- $1: a row. Waits until another publish of the same name has ended, and locks the name.
insert into `laneway_flow_name` (id, flow_id) values $1...
on duplicate key update flow_id = `laneway_flow_name`.flow_id

-- name: owner_of_name
-- $1: the id of a name, locked by us.
select flow_id from `laneway_flow_name` force index (primary) where id = $1 for update

-- name: give_flow_name
-- $1: the id of a name, locked by us, $2: flow.
update `laneway_flow_name` set flow_id = $2 where id = $1

-- name: add_flow
-- $1: rows.
insert into `laneway_flow` (queue, name, created_at, keep, held, live) values $1...

-- name: add_node_messages
-- $1: rows. As add_messages, of nodes.
insert into `laneway_message` (channel_id, due, published_at, first_published_at, expires_at,
    key_window, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, payload, flow_id)
values $1...

-- name: take_ids
-- $1: how wide a step its id takes: from it on, so many are ours. Only they are wanted, the message is deleted in the same
-- transaction. Fails where the server does not let us set the step.
/*M!100300 set statement auto_increment_increment = $1:numbers for */
insert /*+ set_var(auto_increment_increment = $1:numbers) */ into `laneway_message` (channel_id, due, published_at,
    first_published_at, max_attempts, priority, queue, channel, kind, content_type, payload)
values (if(@@auto_increment_increment = $1:numbers, '', null), 0, 0, 0, 1, 0, '', '', '', '', '')

-- name: add_id
-- $1: an id that is ours. As above.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, max_attempts, priority, queue,
    channel, kind, content_type, payload)
values ($1, '', 0, 0, 0, 1, 0, '', '', '', '', '')

-- name: add_nodes
-- $1: rows.
insert into `laneway_flow_node` (id, flow_id, pending, children, run_when, state, queue, channel, kind) values $1...

-- name: add_held_nodes
-- $1: (node, pending, children, run_when), whose messages are held already.
insert into `laneway_flow_node` (id, flow_id, pending, children, run_when, state, queue, channel, kind)
select h.id, h.flow_id, x.pending, x.children, x.run_when, 'held', h.queue, h.channel, h.kind
from $1:new_nodes x straight_join `laneway_flow_held` h force index (primary) on h.id = x.id

-- name: add_edges
-- $1: rows.
insert into `laneway_flow_edge` (parent, number, child, strict, place)
select x.parent, x.number, x.child, x.strict, x.place from $1:edges x

-- name: add_held
-- $1: rows.
insert into `laneway_flow_held` (id, flow_id, delay, at, expires_in, expires_at, max_attempts, priority, queue, channel,
    kind, content_type, headers, payload)
values $1...

-- name: add_plain_held
-- $1: rows, of messages without headers, delay and expiry.
insert into `laneway_flow_held` (id, flow_id, max_attempts, priority, queue, channel, kind, content_type, payload)
values $1...

-- name: add_added
-- $1: rows.
insert into `laneway_flow_added` (adder, number, id, run_when, parents) values $1...

-- name: flow_of_message
-- $1: a message that is leased to us. A locking read, so that a caller's old snapshot does not hide it.
select flow_id from `laneway_message` force index (primary) where id = $1 lock in share mode

-- name: known_nodes
-- $1: ids, $2: flow. Those of them that are its nodes. Only reads.
select n.id from $1:ids x straight_join `laneway_flow_node` n force index (primary) on n.id = x.id
where n.flow_id = $2

-- name: parents
-- $1: message.
select n.id, n.kind, n.state from `laneway_flow_edge` e force index (flow_edge_child)
straight_join `laneway_flow_node` n force index (primary) on n.id = e.parent
where e.child = $1 order by e.place

-- name: flows
-- $1: queue, null for all; $2: the id of the last one seen, or null; $3: how many.
select f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at, f.held + coalesce(sum(k.held), 0),
    f.live + coalesce(sum(k.live), 0), f.dead + coalesce(sum(k.dead), 0), f.completed + coalesce(sum(k.completed), 0),
    f.failed + coalesce(sum(k.failed), 0), f.skipped + coalesce(sum(k.skipped), 0),
    exists (select 1 from `laneway_flow_undecided` u where u.flow_id = f.id)
from (
    select * from `laneway_flow` where ($1 is null or queue = $1) and ($2 is null or id < $2) order by id desc limit $3
) f left join `laneway_flow_count` k on k.flow_id = f.id
group by f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at, f.held, f.live, f.dead, f.completed, f.failed,
    f.skipped
order by f.id desc

-- name: flow
-- $1: id.
select f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at, f.held + coalesce(sum(k.held), 0),
    f.live + coalesce(sum(k.live), 0), f.dead + coalesce(sum(k.dead), 0), f.completed + coalesce(sum(k.completed), 0),
    f.failed + coalesce(sum(k.failed), 0), f.skipped + coalesce(sum(k.skipped), 0),
    exists (select 1 from `laneway_flow_undecided` u where u.flow_id = f.id)
from `laneway_flow` f left join `laneway_flow_count` k force index (flow_count_flow) on k.flow_id = f.id
where f.id = $1
group by f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at, f.held, f.live, f.dead, f.completed, f.failed,
    f.skipped

-- name: flow_nodes
-- $1: flow, $2: the id of the last one seen, $3: how many.
select n.id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when l.message_id is null then 'waiting' else 'leased' end, nullif(n.ended_at, 0),
    n.pending
from `laneway_flow_node` n force index (flow_node_flow) left join `laneway_lease` l on l.message_id = n.id
where n.flow_id = $1 and n.id > $2 order by n.id limit $3

-- name: node_parents
-- $1: ids of nodes, $2: how many of each.
select e.child, e.parent from $1:ids x
straight_join `laneway_flow_edge` e force index (flow_edge_child) on e.child = x.id and e.place < $2
order by e.child, e.place

-- name: flow_place
-- $1: message. The node, and its flow.
select n.id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when l.message_id is null then 'waiting' else 'leased' end, nullif(n.ended_at, 0),
    n.pending, n.flow_id
from `laneway_flow_node` n left join `laneway_lease` l on l.message_id = n.id where n.id = $1

-- name: parent_links
-- $1: message, $2: how many. What it came after.
select n.id, n.queue, n.channel, n.kind,
    case when n.state <> 'live' then n.state when l.message_id is null then 'waiting' else 'leased' end
from `laneway_flow_edge` e force index (flow_edge_child)
straight_join `laneway_flow_node` n force index (primary) on n.id = e.parent
left join `laneway_lease` l on l.message_id = n.id
where e.child = $1 and e.place < $2 order by e.place

-- name: child_links
-- $1: message, $2: how many. What comes after it.
select n.id, n.queue, n.channel, n.kind,
    case when n.state <> 'live' then n.state when l.message_id is null then 'waiting' else 'leased' end
from `laneway_flow_edge` e force index (primary)
straight_join `laneway_flow_node` n force index (primary) on n.id = e.child
left join `laneway_lease` l on l.message_id = n.id
where e.parent = $1 and e.number < $2 order by e.number

-- name: next_flow_with_dead
-- $1: flow. The next one that has a dead letter, however many each has.
select flow_id from `laneway_dead` force index (dead_flow) where flow_id > $1 order by flow_id limit 1

-- name: dead_nodes
-- $1: flow, $2: how many.
select id, queue, channel, kind, died_at from `laneway_dead` force index (dead_flow)
where flow_id = $1 order by id limit $2

-- name: live_channels
-- $1: flow. The channels of its messages. Only reads.
select distinct n.queue, n.channel from `laneway_flow_node` n force index (flow_node_flow)
where n.flow_id = $1 and n.state = 'live'

-- name: lock_flow
-- $1: flow.
select cancelled_at, ended_at from `laneway_flow` force index (primary) where id = $1 for update

-- name: mark_flow_cancelled
-- $1: flow, locked by us, $2: now.
update `laneway_flow` set cancelled_at = coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
where id = $1 and cancelled_at is null and ended_at is null

-- name: lock_open_nodes
-- $1: flow, locked by us. Its nodes that have not ended; a locking read, so that a caller's old snapshot hides none.
select n.id, n.state from `laneway_flow_node` n force index (flow_node_flow)
where n.flow_id = $1 and n.state in ('held', 'live', 'dead') order by n.id
for update

-- name: counted_flows
-- $1: limit. Flows whose counts have changed. Only reads.
select distinct k.flow_id from (
    select flow_id from `laneway_flow_count` force index (flow_count_flow) order by flow_id limit $1) k

-- name: lock_free_flows
-- $1: ids in order. Those that nobody else has locked.
select f.id, f.queue, f.name, f.held, f.live, f.dead, f.ended_at
from $1:ids x straight_join `laneway_flow` f force index (primary) on f.id = x.id
for update skip locked

-- name: flow_changes
-- $1: flows in order, locked by us, $2: limit. Flow by flow. If there are fewer, all that one transaction wrote is in the
-- answer, or nothing of it.
select k.id, k.flow_id, k.held, k.live, k.dead, k.completed, k.failed, k.skipped
from $1:ids x straight_join `laneway_flow_count` k force index (flow_count_flow) on k.flow_id = x.id
limit $2

-- name: lock_flow_changes
-- $1: ids. Fewer than the flow_changes: those were read in an old snapshot.
select k.id from $1:ids x straight_join `laneway_flow_count` k force index (primary) on k.id = x.id for update

-- name: delete_flow_changes
-- $1: ids.
delete k from $1:ids x straight_join `laneway_flow_count` k force index (primary) on k.id = x.id

-- name: add_to_flow
-- $1: flow, locked by us, $2..$7: what is added to its counts.
update `laneway_flow` set held = held + $2, live = live + $3, dead = dead + $4, completed = completed + $5,
    failed = failed + $6, skipped = skipped + $7
where id = $1

-- name: end_flow
-- $1: flow, $2: now.
update `laneway_flow` set ended_at = $2, expires_at = $2 + keep where id = $1 and ended_at is null

-- name: free_flow_name
-- $1: the id of a name, $2: the flow that had it.
delete from `laneway_flow_name` where id = $1 and flow_id = $2

-- name: expired_flows
-- $1: now, $2: limit. Only reads.
select id from `laneway_flow` force index (flow_expiry) where expires_at <= $1 order by expires_at limit $2

-- name: nodes_of_flow
-- $1: flow, $2: limit.
select id from `laneway_flow_node` force index (flow_node_flow) where flow_id = $1 order by id limit $2

-- name: edges_of_nodes
-- $1: ids of nodes, $2: limit. Node by node.
select e.parent, e.number from $1:ids x straight_join `laneway_flow_edge` e force index (primary) on e.parent = x.id
limit $2

-- name: delete_edges
-- $1: (parent, number).
delete e from $1:pairs x
straight_join `laneway_flow_edge` e force index (primary) on e.parent = x.id and e.number = x.fence

-- name: delete_nodes
-- $1: ids.
delete n from $1:ids x straight_join `laneway_flow_node` n force index (primary) on n.id = x.id

-- name: delete_flow
-- $1: flow, locked by us.
delete from `laneway_flow` where id = $1
