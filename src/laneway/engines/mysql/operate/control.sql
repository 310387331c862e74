-- name: add_audit
-- $1: actor, $2: source, $3: action, $4: target as JSON, $5: how many, $6: now.
insert into `laneway_audit` (at, actor, source, action, target, affected)
values (coalesce($6, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), $1, $2, $3, $4, $5)

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, target, affected from `laneway_audit`
where id < coalesce($2, 9223372036854775807)
order by id desc limit $1

-- name: count_pause
-- Waits for the claims that have looked for pauses and are starting something.
update `laneway_turnstile` force index (primary) set n = n + 1 where name = 'pause'

-- name: lock_pause
-- $1: queue, $2: kind, or null for the whole queue. (Few rows, so it needs no index.)
select id, until from `laneway_pause` where queue = $1 and kind <=> $2 for update

-- name: add_pause
-- $1: queue, $2: kind, or null for the whole queue, $3: until, $4: now, $5: actor, $6: reason.
insert into `laneway_pause` (queue, kind, until, since, actor, reason) values ($1, $2, $3, $4, $5, $6)

-- name: pauses
-- $1: queue, or null for all, $2: now.
select queue, kind, until, since, actor, reason from `laneway_pause`
where ($1 is null or queue = $1)
    and coalesce(until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true)
order by queue, kind, id

-- name: set_fair_queue
-- $1: queue, $2: turn, $3: now.
insert into `laneway_fair_queue` (queue, turn, since) values ($1, $2, $3)
on duplicate key update turn = values(turn)

-- name: delete_fair_queue
-- $1: queue.
delete from `laneway_fair_queue` where queue = $1

-- name: delete_fair_channels
-- $1: queue.
delete from `laneway_fair_channel` where queue = $1

-- name: count_fair_queues
update `laneway_turnstile` force index (primary)
set fair = (select count(*) from `laneway_fair_queue`) where name = 'pause'

-- name: fairness
-- $1: queue.
select turn, since from `laneway_fair_queue` where queue = $1

-- name: control_to_delete
-- $1: now, $2: limit. Ended pauses (0; they are few, so they need no index) and old rows of the audit (1), with their ids;
-- whether pauses of channels have ended (2). Ids of the audit follow the time.
(select 0, id from `laneway_pause` where until <= $1 limit $2)
union all
select 1, a.id from (
    select id, at from `laneway_audit` force index (primary)
    where (select b.at from `laneway_audit` b order by b.id limit 1)
        < $1 - (select s.audit_days from `laneway_setting` s) * 86400000000
    order by id limit $2) a
where a.at < $1 - (select s.audit_days from `laneway_setting` s) * 86400000000
union all
(select 2, 0 from `laneway_channel` force index (channel_timed) where paused_until <= $1 limit 1)

-- name: timed_channels
-- $1: now, $2: limit. Channels whose pauses have ended, skipping those that others hold.
select id from `laneway_channel` force index (channel_timed) where paused_until <= $1 limit $2
for update skip locked

-- name: delete_pauses
-- $1: ids.
delete t from $1:ids x straight_join `laneway_pause` t force index (primary) on t.id = x.id

-- name: delete_audit
-- $1: ids.
delete t from $1:ids x straight_join `laneway_audit` t force index (primary) on t.id = x.id

-- name: make_due
-- $1: message ids, $2: now. We have locked their channels.
update $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id set m.due = $2

-- name: behind_others
-- $1: message ids. Those that wait behind a running message of their key, and stay there.
select m.id from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
straight_join `laneway_dedupe` t force index (primary)
    on t.id = unhex(substr(sha2(concat(octet_length(m.queue), ':', m.queue, m.`key`), 256), 1, 32))
where t.message_id = m.id and t.behind is not null

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
-- $1: those seen before this time, $2: limit.
select id from `laneway_worker` force index (worker_seen) where seen_at < $1 limit $2

-- name: delete_workers
-- $1: ids, $2: only if they were not seen since this time.
delete from `laneway_worker` where id in ($1...) and seen_at < $2

-- name: old_requests
-- $1: limit. Those whose lease has ended. It reads past the others: what is running and was asked to stop.
select r.message_id, r.fence from `laneway_cancel_request` r force index (primary)
where (select l.fence from `laneway_lease` l where l.message_id = r.message_id and l.fence = r.fence) is null
limit $1

-- name: delete_requests
-- $1: (message id, fence).
delete t from $1:pairs x
straight_join `laneway_cancel_request` t force index (primary) on t.message_id = x.id and t.fence = x.fence
