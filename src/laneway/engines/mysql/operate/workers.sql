-- name: worker_seen
-- $1: id, $2: name, $3: host, $4: pid, $5: version, $6: queues, $7: kinds, $8: slots, $9: used, $10: whether
-- it is stopping, $11: now.
insert into `laneway_worker` (id, name, host, pid, version, queues, kinds, slots, used, stopping, started_at, seen_at)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, t.now, t.now
from (select coalesce($11, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) t
on duplicate key update slots = $8, used = $9, stopping = $10, seen_at = t.now

-- name: cancel_requests
-- $1: the name of a worker. The leases under this name whose handlers are to stop.
select r.message_id, r.fence from `laneway_cancel_request` r force index (cancel_request_worker)
straight_join `laneway_lease` l force index (primary) on l.message_id = r.message_id and l.fence = r.fence
where r.worker = $1

-- name: worker_gone
-- $1: id.
delete from `laneway_worker` where id = $1

-- name: workers
-- $1: limit, $2: now. Those seen last come first.
select id, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) - 30000000
        then 'vanished' when stopping then 'stopping' else 'running' end, name
from `laneway_worker` order by seen_at desc, id limit $1

-- name: leases_to_cancel
-- $1: message ids in order, $2: now. Their leases, not locked: a handler's own transaction may hold the lock.
select l.message_id, l.fence, l.worker, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:ids x straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
where l.fence > 0

-- name: add_cancel_requests
-- $1: rows.
insert ignore into `laneway_cancel_request` (message_id, fence, worker, requested_at) values $1...

-- name: old_workers
-- $1: those seen before this time.
select id from `laneway_worker` where seen_at < $1 limit 1000

-- name: delete_workers
-- $1: ids, $2: only if they were not seen since this time.
delete from `laneway_worker` where id in ($1...) and seen_at < $2

-- name: old_requests
-- Those whose lease has ended.
select r.message_id, r.fence from `laneway_cancel_request` r
where not exists (select 1 from `laneway_lease` l where l.message_id = r.message_id and l.fence = r.fence)
limit 1000

-- name: delete_requests
-- $1: (message id, fence).
delete t from $1:pairs x
straight_join `laneway_cancel_request` t force index (primary) on t.message_id = x.id and t.fence = x.fence
