-- name: add_audit
-- $1: now, $2: actor, $3: source, $4: action, $5: target as JSON, $6: how many.
insert into "laneway_audit" (at, actor, source, action, target, affected)
values ($1, $2, $3, $4, $5, $6)

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, target, affected from "laneway_audit"
where id < coalesce($2, 9223372036854775807)
order by id desc limit $1

-- name: delete_pause
-- $1: queue, $2: kind, or null for the whole queue.
delete from "laneway_pause" where queue = $1 and kind is $2 returning until

-- name: add_pause
-- $1: queue, $2: kind, or null for the whole queue, $3: until, $4: now, $5: actor, $6: reason.
insert into "laneway_pause" (queue, kind, until, since, actor, reason) values ($1, $2, $3, $4, $5, $6)

-- name: pauses
-- $1: queue, or null for all, $2: now.
select queue, kind, until, since, actor, reason from "laneway_pause"
where ($1 is null or queue = $1) and (until is null or until > $2)
order by queue, kind nulls first

-- name: set_fair_queue
-- $1: queue, $2: turn, $3: now.
insert into "laneway_fair_queue" (queue, turn, since) values ($1, $2, $3)
on conflict (queue) do update set turn = excluded.turn

-- name: delete_fair_queue
-- $1: queue.
delete from "laneway_fair_queue" where queue = $1

-- name: delete_fair_channels
-- $1: queue.
delete from "laneway_fair_channel" where queue = $1

-- name: count_fair_queues
update "laneway_state" set fair = (select count(*) from "laneway_fair_queue")

-- name: fairness
-- $1: queue.
select turn, since from "laneway_fair_queue" where queue = $1

-- name: time_ahead
-- $1: queue, $2: channels. As fair_paces, for those that are ahead.
with pace as materialized (
    select q.queue, q.turn, coalesce((
        select f.booked from "laneway_fair_channel" f cross join "laneway_channel" c
        where f.queue = q.queue and f.booked >= q.reached - 100 * q.turn and c.id = f.channel_id and c.turn is not null
        order by f.booked limit 1), q.reached) as reached
    from "laneway_fair_queue" q where q.queue = $1)
select c.name, f.booked - p.reached
from pace p cross join json_each($2) j cross join "laneway_channel" c cross join "laneway_fair_channel" f
where c.queue = p.queue and c.name = j.value and f.channel_id = c.id and f.booked >= p.reached + p.turn

-- name: make_due
-- $1: message ids, $2: now.
update "laneway_message" set due = $2 where id in (select value from json_each($1))

-- name: behind_others
-- $1: message ids. Those that wait behind a running message of their key, and stay there.
select m.id from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_dedupe" d
where m.id = j.value and m.key is not null and c.id = m.channel_id and d.queue = c.queue and d.key = m.key
    and d.message_id = m.id and d.behind is not null

-- name: worker_seen
-- $1: id, $2: name, $3: host, $4: pid, $5: version, $6: queues, $7: kinds, $8: slots, $9: used, $10: whether
-- it is stopping, $11: now. Returns the leases under its name whose handlers are to stop, as a JSON list.
insert into "laneway_worker" (
    id, name, host, pid, version, queues, kinds, slots, used, stopping, started_at, seen_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
on conflict (id) do update set slots = $8, used = $9, stopping = $10, seen_at = $11
returning (
    select json_group_array(json_array(r.message_id, r.fence))
    from "laneway_cancel_request" r
    where r.worker = $2 and exists (
        select 1 from "laneway_lease" l where l.fence = r.fence and l.message_id = r.message_id))

-- name: worker_gone
-- $1: id.
delete from "laneway_worker" where id = $1

-- name: workers
-- $1: limit, $2: now. Those seen last come first.
select id, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < $2 - 30000000 then 'vanished' when stopping then 'stopping' else 'running' end, name
from "laneway_worker" order by seen_at desc, id limit $1

-- name: add_cancel_requests
-- $1: message ids, $2: now. For those that are leased.
insert into "laneway_cancel_request" (fence, message_id, worker, requested_at)
select l.fence, l.message_id, k.worker, $2
from "laneway_lease" l cross join "laneway_claim" k
where l.message_id in (select value from json_each($1)) and k.fence = l.fence
on conflict do nothing

-- name: delete_old_workers
-- $1: those seen before this time, $2: limit.
delete from "laneway_worker" where id in (select id from "laneway_worker" where seen_at < $1 limit $2)
returning id

-- name: delete_old_requests
-- $1: limit. Those whose lease has ended.
delete from "laneway_cancel_request" where (fence, message_id) in (
    select r.fence, r.message_id from "laneway_cancel_request" r
    where not exists (
        select 1 from "laneway_lease" l where l.fence = r.fence and l.message_id = r.message_id)
    limit $1)
returning message_id
