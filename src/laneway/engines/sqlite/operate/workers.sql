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
-- $1: those seen before this time.
delete from "laneway_worker" where seen_at < $1 returning id

-- name: delete_old_requests
-- Those whose lease has ended.
delete from "laneway_cancel_request" where not exists (
    select 1 from "laneway_lease" l
    where l.fence = "laneway_cancel_request".fence and l.message_id = "laneway_cancel_request".message_id)
returning message_id
