-- The lake's catalog on SQLite. There is one writer at a time, so the position of a row in the history
-- is its id alone: (0, id).

-- name: clock
select cast(round((julianday('now') - 2440587.5) * 86400000000) as integer) as now_at

-- name: next_batch
-- Where the next batch ends: $rows rows on, or at the last row.
select s.xid, s.id
from (
    select 0 as xid, h.id
    from `laneway_history` h
    where h.id > $from_id
    order by h.id limit $rows
) s
order by s.xid desc, s.id desc limit 1

-- name: history_rows
select h.id, 0 as xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error, h.first_published_at, h.published_at, h.due, h.claimed_at, h.started_at, h.ended_at, h.payload_size,
    h.terminal, h.dead
from `laneway_history` h
where h.id > $from_id
    and h.id <= $to_id
order by h.id

-- name: count_rows
select count(*) from `laneway_history` h
where h.id > $from_id
    and h.id <= $to_id

-- name: plan_batch
-- If two syncs plan the same batch at the same time, the first one's range counts.
insert or ignore into `laneway_lake_commit` (lake, batch, from_xid, from_id, to_xid, to_id, `rows`, checksum, first_ended_at, last_ended_at,
    state, planned_at)
values ($lake, $batch, $from_xid, $from_id, $to_xid, $to_id, $rows, $checksum:text, $first_ended_at:micros, $last_ended_at:micros,
    'planned', $planned_at:micros)

-- name: days
-- The days of the history, and how many rows of each may not be purged yet: those after the last batch,
-- and those that some lake of the queue has not verified.
select h.ended_at - h.ended_at % 86400000000 as day, count(*) as n,
    sum(case when h.id <= $last_id then 0 else 1 end) as unsynced,
    sum(case when h.id <= $to_id or not (h.id <= $last_id) then 0 else 1 end) as unverified, 0 as unread
from `laneway_history` h
group by h.ended_at - h.ended_at % 86400000000
order by 1

-- name: uncounted
select min(h.ended_at) as uncounted from `laneway_history` h
where h.id > (select f.history_id from `laneway_fold` f) and h.ended_at < $before

-- name: purgeable
select h.id from `laneway_history` h
where h.id > $seen and h.ended_at >= $begins and h.ended_at < $ends
    and h.id <= $to_id
order by h.id limit $limit

-- name: behind
-- How many rows are not in the lake yet, since when, and how many of them have no position yet.
select count(*) as n, min(h.ended_at) as since_at, 0 as unsettled
from `laneway_history` h
where h.id > $from_id

-- name: settings
select s.history, s.history_days from `laneway_state` s

-- name: live_rows
select m.id as message_id, m.queue, m.channel, m.kind, m.state, m.attempt, max(m.due, m.published_at) as due, m.claimed_at,
    $seen_at:micros as seen_at
from `laneway_message_v1` m
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, $seen_at:micros from `laneway_dead` d

-- name: tenant_rows
select
    (select count(*) from `laneway_message_v1` m where m.channel = $channel and ($queue is null or m.queue = $queue)) as messages,
    (select count(*) from `laneway_dead` d where d.channel = $channel and ($queue is null or d.queue = $queue)) as dead_letters,
    (select count(*) from `laneway_history` h where h.channel = $channel and ($queue is null or h.queue = $queue)) as history,
    (select count(*) from `laneway_result` r where r.channel = $channel and ($queue is null or r.queue = $queue)) as results,
    (select count(*) from `laneway_flow_held` f where f.channel = $channel and ($queue is null or f.queue = $queue)) as held,
    (select count(*) from (select d.queue, d.channel from `laneway_dead_count` d) c
        where c.channel = $channel and ($queue is null or c.queue = $queue)) as counts,
    (select count(*) from `laneway_operation` o where json_extract(o.wanted, '$.channel') = $channel and ($queue is null or json_extract(o.wanted, '$.queue') = $queue)) as operations

-- name: erase_counts
-- Of dead letters, which are gone.
delete from `laneway_dead_count` where channel = $channel and ($queue is null or queue = $queue) and n = 0

-- name: erase_operations
delete from `laneway_operation` where json_extract(wanted, '$.channel') = $channel
    and ($queue is null or json_extract(wanted, '$.queue') = $queue) and state <> 'running'
