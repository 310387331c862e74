-- name: held_leases
-- $1: fence, $2: message ids. Those that are leased under this fence.
select message_id, fence, channel_id, until from "laneway_lease"
where fence = $1 and message_id in (select value from json_each($2))

-- name: delete_leases
-- $1: fence, $2: message ids.
delete from "laneway_lease"
where fence = $1 and message_id in (select value from json_each($2))

-- name: claim_times
-- $1: fences.
select k.fence, k.claimed_at from json_each($1) j cross join "laneway_claim" k where k.fence = j.value

-- name: charge_time
-- $1: channel, $2: how many of its leases ended, $3: how long they took, $4: now. Only of queues that are fair by time.
update "laneway_fair_channel" set ended = ended + $2, took = took + $3, ended_at = $4 where channel_id = $1

-- name: ended_lease_messages
-- $1: message ids. What decides whether they are retried or become dead letters.
select m.id, m.priority, m.due, m.spent, m.max_attempts
from json_each($1) j cross join "laneway_message" m where m.id = j.value

-- name: delete_finished_claims
-- $1: fences. Claims that have no lease left.
delete from "laneway_claim"
where fence in (select value from json_each($1))
    and not exists (select 1 from "laneway_lease" l where l.fence = "laneway_claim".fence)

-- name: add_history
-- Attempts that ended, or messages that ended without an attempt.
-- $1: rows of message id, fence (or null), outcome, terminal, dead, reason, error type, error, and
-- milliseconds that it waited inside a worker (or null); $2: now.
insert into "laneway_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at,
    ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason,
    error_type, error)
select m.id, k.fence, m.attempt + (k.fence is not null), m.first_published_at, m.published_at, m.due,
    k.claimed_at, min(k.claimed_at + 1000 * json_extract(j.value, '$[8]'), $2), $2, length(m.payload), json_extract(j.value, '$[3]'), json_extract(j.value, '$[4]'),
    m.priority, c.queue, c.name, m.kind, k.worker, json_extract(j.value, '$[2]'),
    json_extract(j.value, '$[5]'), json_extract(j.value, '$[6]'), json_extract(j.value, '$[7]')
from "laneway_state" s cross join json_each($1) j cross join "laneway_message" m
cross join "laneway_channel" c left join "laneway_claim" k on k.fence = json_extract(j.value, '$[1]')
where (s.history = 'all'
        or s.history = 'failures' and json_extract(j.value, '$[2]') in ('retried', 'failed', 'expired'))
    and m.id = json_extract(j.value, '$[0]') and c.id = m.channel_id
order by j.key

-- name: message_keys
-- $1: message ids. Their publish keys, and the messages that have these.
select c.queue, m.key, m.id, m.key_window, d.message_id, d.behind, d.behind_due
from json_each($1) j cross join "laneway_message" m indexed by "laneway_message_keyed"
cross join "laneway_channel" c left join "laneway_dedupe" d on d.queue = c.queue and d.key = m.key
where m.id = j.value and m.key is not null and c.id = m.channel_id

-- name: delete_key
-- $1: queue, $2: key, $3: message id.
delete from "laneway_dedupe" where queue = $1 and key = $2 and message_id = $3

-- name: keep_key
-- $1: queue, $2: key, $3: message id, $4: keep until.
update "laneway_dedupe" set expires_at = $4 where queue = $1 and key = $2 and message_id = $3

-- name: give_key_to_running
-- $1: queue, $2: key, $3: a message that has ended. If it waited behind a running one, that has the key again.
update "laneway_dedupe" set message_id = behind, behind = null, behind_due = null
where queue = $1 and key = $2 and message_id = $3 and behind is not null

-- name: nothing_in_front
-- $1: queue, $2: key. The running message in front of the key's has ended.
update "laneway_dedupe" set behind = null, behind_due = null where queue = $1 and key = $2

-- name: move_due
-- $1: message, $2: due.
update "laneway_message" set due = $2 where id = $1

-- name: delete_messages
-- $1: message ids.
delete from "laneway_message" where id in (select value from json_each($1))

-- name: waiting_messages
-- $1: message ids. Those that have no lease, with their position in the channel.
select w.channel_id, w.priority, w.due, w.message_id
from json_each($1) j cross join "laneway_message" m cross join "laneway_waiting" w
where m.id = j.value and w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
group by m.id

-- name: delete_waiting
-- $1: channel, $2: priority, $3: due, $4: message.
delete from "laneway_waiting"
where channel_id = $1 and priority = $2 and due = $3 and message_id = $4

-- name: requeue
-- $1: message, $2: due, $3: whether the attempt counts, $4: failed tries since the last progress,
-- $5: whether to keep the saved state, $6: new state, $7: its type.
update "laneway_message" set due = $2, attempt = attempt + $3, spent = $4,
    state = case when $5 then state else $6 end, state_type = case when $5 then state_type else $7 end
where id = $1

-- name: add_waiting_again
-- $1: message ids.
insert into "laneway_waiting" (channel_id, priority, due, message_id, expires_at)
select m.channel_id, m.priority, m.due, m.id, m.expires_at
from json_each($1) j cross join "laneway_message" m where m.id = j.value

-- name: add_dead_letters
-- $1: rows of message id, reason, error type, error, traceback; $2: now. Their keys stay in use, so that a redrive
-- cannot create a second message with the same key.
insert into "laneway_dead" (
    id, died_at, published_at, first_published_at, attempt, max_attempts, priority, queue, channel,
    kind, key, key_window, content_type, headers, state_type, state, reason, error_type, error, traceback,
    payload, tell_at)
select m.id, $2, m.published_at, m.first_published_at, m.attempt + 1, m.max_attempts, m.priority,
    c.queue, c.name, m.kind, m.key, m.key_window, m.content_type, m.headers, m.state_type, m.state,
    json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]'),
    json_extract(j.value, '$[4]'), m.payload, $2
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
where m.id = json_extract(j.value, '$[0]') and c.id = m.channel_id

-- name: add_dead_counts
-- $1: ids of messages that have just become dead letters.
insert into "laneway_dead_count" (queue, channel, n)
select queue, channel, count(*) from "laneway_dead"
where id in (select value from json_each($1)) group by queue, channel
on conflict (queue, channel) do update set n = n + excluded.n

-- name: keep_ended
-- $1: message ids, $2: outcome, $3: now. How messages ended that no handler ended, if their results were to be
-- kept. Anybody can write any headers: what is no number is nothing, and ten years are the longest.
insert into "laneway_result" (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select m.id, $3, $3 + cast(1000000 * max(min(json_extract(m.headers, '$."laneway-keep-result"'), 315360000), 0) as integer),
    c.queue, c.name, m.kind, $2
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
where m.id = j.value and c.id = m.channel_id and m.headers is not null
    and json_type(m.headers, '$."laneway-keep-result"') in ('integer', 'real')
on conflict (message_id) do nothing

-- name: node_rows
-- $1: ids. Those that are nodes of flows.
select n.id, n.flow_id, n.pending, n.missed, n.run_when, n.state, n.died
from json_each($1) j cross join "laneway_flow_node" n where n.id = j.value

-- name: child_edges
-- $1: ids of parents, $2: how many. In the order of the parents, and of each parent's children.
select e.parent, e.child, e.strict, e.child from json_each($1) j cross join "laneway_flow_edge" e
where e.parent = j.value limit $2

-- name: child_edges_from
-- $1: parents, each with the child to begin with, $2: how many. As child_edges.
select e.parent, e.child, e.strict, e.child from json_each($1) j cross join "laneway_flow_edge" e
where e.parent = json_extract(j.value, '$[0]') and e.child >= json_extract(j.value, '$[1]') limit $2

-- name: undecided_of
-- $1: ids of nodes. What is left of them.
select u.parent, u.strict, u.others, u.missed, u.start, u.flow_id
from json_each($1) j cross join "laneway_flow_undecided" u where u.parent = j.value

-- name: undecided_rows
-- $1: how many. What the ends of nodes have left.
select parent, strict, others, missed, start, flow_id from "laneway_flow_undecided" order by parent limit $1

-- name: set_undecided
-- $1..$6: the columns.
insert or replace into "laneway_flow_undecided" (parent, strict, others, missed, start, flow_id)
values ($1, $2, $3, $4, $5, $6)

-- name: delete_undecided
-- $1: node, $2: strict.
delete from "laneway_flow_undecided" where parent = $1 and strict = $2

-- name: forget_undecided
-- $1: ids of nodes.
delete from "laneway_flow_undecided" where parent in (select value from json_each($1))

-- name: staged_rows
-- $1: ids of messages. What their holders added to their flows.
select h.id, h.flow_id, h.adder, h.fence, h.parents, h.run_when, f.cancelled_at is not null
from json_each($1) j cross join "laneway_flow_held" h indexed by "laneway_flow_held_adder"
cross join "laneway_flow" f
where h.adder = j.value and f.id = h.flow_id order by h.id

-- name: delete_held
-- $1: ids.
delete from "laneway_flow_held" where id in (select value from json_each($1))

-- name: add_staged_nodes
-- $1: ids of what holders added. Their counts are written afterwards.
insert into "laneway_flow_node" (id, flow_id, pending, run_when, state, queue, channel, kind)
select h.id, h.flow_id, 0, h.run_when, 'held', h.queue, h.channel, h.kind
from json_each($1) j cross join "laneway_flow_held" h where h.id = j.value

-- name: add_staged_edges
-- $1: ids of what holders added.
insert into "laneway_flow_edge" (parent, child, strict, place)
select p.value, h.id, h.run_when = 'completed', p.key
from json_each($1) j cross join "laneway_flow_held" h cross join json_each(h.parents) p where h.id = j.value

-- name: unstage_nodes
-- $1: ids.
update "laneway_flow_held" set adder = null, fence = null, parents = null
where id in (select value from json_each($1))

-- name: write_node
-- $1: id, $2: pending, $3: missed, $4: state, $5: died, $6: when it ended, or null.
update "laneway_flow_node" set pending = $2, missed = $3, state = $4, died = $5,
    ended_at = case when $4 = 'live' then null else coalesce($6, ended_at) end
where id = $1

-- name: write_nodes
-- $1: ids, $2..$6: as in write_node.
update "laneway_flow_node" set pending = $2, missed = $3, state = $4, died = $5,
    ended_at = case when $4 = 'live' then null else coalesce($6, ended_at) end
where id in (select value from json_each($1))

-- name: count_flow
-- $1: flow, $2..$7: what is added to its counts.
update "laneway_flow" set held = held + $2, live = live + $3, dead = dead + $4, completed = completed + $5,
    failed = failed + $6, skipped = skipped + $7
where id = $1

-- name: held_channels
-- $1: ids of held nodes.
select distinct h.queue, h.channel from json_each($1) j cross join "laneway_flow_held" h where h.id = j.value

-- name: held_kinds
-- $1: ids of held nodes. How many there are, by queue and kind.
select h.queue, h.kind, count(*) from json_each($1) j cross join "laneway_flow_held" h where h.id = j.value
group by h.queue, h.kind

-- name: release_nodes
-- $1: ids of held nodes, $2: now. Their channels exist.
insert into "laneway_message" (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type, payload,
    expires_at, headers)
select h.id, c.id, h.priority, coalesce(h.at, $2 + h.delay, $2), $2, $2, h.max_attempts, h.kind, h.content_type, h.payload,
    coalesce(h.expires_at, $2 + h.expires_in), h.headers
from json_each($1) j cross join "laneway_flow_held" h cross join "laneway_channel" c
where h.id = j.value and c.queue = h.queue and c.name = h.channel
returning id, channel_id, priority, due

-- name: end_flows
-- $1: now, $2: limit. Flows that have nothing left.
update "laneway_flow" set ended_at = $1, expires_at = $1 + keep
where id in (
    select id from "laneway_flow" where ended_at is null and held = 0 and live = 0 and dead = 0 limit $2)

-- name: expired_flow_nodes
-- $1: now, $2: limit. Nodes of flows that are no longer kept, and that the figures by minute have passed.
select n.id from "laneway_flow" f cross join "laneway_flow_node" n
where f.expires_at <= $1 and n.flow_id = f.id and n.id <= (select p.message_id from "laneway_fold" p) limit $2

-- name: delete_flow_edges
-- $1: ids of nodes.
delete from "laneway_flow_edge" where parent in (select value from json_each($1))

-- name: delete_flow_nodes
-- $1: ids of nodes.
delete from "laneway_flow_node" where id in (select value from json_each($1))

-- name: delete_flows
-- $1: now, $2: limit. Those that are no longer kept and have no nodes left.
delete from "laneway_flow" where id in (
    select f.id from "laneway_flow" f
    where f.expires_at <= $1 and not exists (select 1 from "laneway_flow_node" n where n.flow_id = f.id) limit $2)
returning id

-- name: count_flows
-- $1: how many more there are.
update "laneway_state" set flows = flows + $1
