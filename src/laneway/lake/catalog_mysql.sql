-- The lake's catalog on MySQL and MariaDB. The position of a row in the history is (settled, id): the
-- stamp that it got after its commit, and its id.

-- name: clock
select timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now_at

-- name: next_batch
-- Where the next batch ends: $rows rows on, or at the last row.
select s.xid, s.id
from (
    select h.settled as xid, h.id
    from `laneway_history` h
    where h.settled >= $from_xid and (h.settled > $from_xid or h.id > $from_id)
    order by h.settled, h.id limit $rows
) s
order by s.xid desc, s.id desc limit 1

-- name: history_rows
select h.id, h.settled as xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error, h.first_published_at, h.published_at, h.due, h.claimed_at, h.started_at, h.ended_at, h.payload_size,
    h.terminal, h.dead
from `laneway_history` h
where h.settled >= $from_xid and (h.settled > $from_xid or h.id > $from_id)
    and h.settled is not null and h.settled <= $to_xid and (h.settled < $to_xid or h.id <= $to_id)
order by h.settled, h.id

-- name: count_rows
select count(*) from `laneway_history` h
where h.settled >= $from_xid and (h.settled > $from_xid or h.id > $from_id)
    and h.settled is not null and h.settled <= $to_xid and (h.settled < $to_xid or h.id <= $to_id)

-- name: plan_batch
-- If two syncs plan the same batch at the same time, the first one's range counts.
insert ignore into `laneway_lake_commit` (lake, batch, from_xid, from_id, to_xid, to_id, `rows`, checksum, first_ended_at, last_ended_at,
    state, planned_at)
values ($lake, $batch, $from_xid, $from_id, $to_xid, $to_id, $rows, $checksum:text, $first_ended_at:micros, $last_ended_at:micros,
    'planned', $planned_at:micros)

-- name: days
-- The days of the history, and how many rows of each may not be purged yet: those after the last batch,
-- and those that some lake of the queue has not verified.
select h.ended_at - h.ended_at % 86400000000 as day, count(*) as n,
    sum(case when h.settled is not null and h.settled <= $last_xid and (h.settled < $last_xid or h.id <= $last_id) then 0 else 1 end) as unsynced,
    sum(case when h.settled is not null and h.settled <= $to_xid and (h.settled < $to_xid or h.id <= $to_id) or not (h.settled is not null and h.settled <= $last_xid and (h.settled < $last_xid or h.id <= $last_id)) then 0 else 1 end) as unverified, 0 as unread
from `laneway_history` h
group by h.ended_at - h.ended_at % 86400000000
order by 1

-- name: uncounted
select min(h.ended_at) as uncounted from `laneway_fold` f straight_join `laneway_history` h
where (h.settled is null or h.settled > f.settled or (h.settled = f.settled and h.id > f.history_id)) and h.ended_at < $before

-- name: purgeable
select h.id from `laneway_history` h
where h.id > $seen and h.ended_at >= $begins and h.ended_at < $ends
    and h.settled is not null and h.settled <= $to_xid and (h.settled < $to_xid or h.id <= $to_id)
order by h.id limit $limit

-- name: behind
-- How many rows are not in the lake yet, since when, and how many of them have no position yet.
select count(*) as n, min(h.ended_at) as since_at, sum(h.settled is null) as unsettled
from `laneway_history` h
where (h.settled >= $from_xid and (h.settled > $from_xid or h.id > $from_id)) or h.settled is null

-- name: settings
select s.history, s.history_days from `laneway_setting` s

-- name: live_rows
select m.id as message_id, m.queue, m.channel, m.kind,
    case when l.message_id is not null then 'leased' when m.due > $seen_at:micros then 'scheduled' else 'waiting' end as state,
    m.attempt, greatest(m.due, m.published_at) as due, l.claimed_at, $seen_at:micros as seen_at
from `laneway_message` m left join `laneway_lease` l on l.message_id = m.id
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, $seen_at:micros from `laneway_dead` d

-- name: tenant_rows
select
    (select count(*) from `laneway_message_v1` m where m.channel = $channel and ($queue is null or m.queue = $queue)) as messages,
    (select count(*) from `laneway_dead` d where d.channel = $channel and ($queue is null or d.queue = $queue)) as dead_letters,
    (select count(*) from `laneway_history` h where h.channel = $channel and ($queue is null or h.queue = $queue)) as history,
    (select count(*) from `laneway_result` r where r.channel = $channel and ($queue is null or r.queue = $queue)) as results,
    (select count(*) from `laneway_flow_held` f where f.channel = $channel and ($queue is null or f.queue = $queue)) as held,
    (select count(*) from (select d.queue, d.channel from `laneway_dead_count` d union all select d.queue, d.channel from `laneway_dead_sum` d) c
        where c.channel = $channel and ($queue is null or c.queue = $queue)) as counts,
    (select count(*) from `laneway_operation` o where cast(json_unquote(json_extract(convert(o.wanted using utf8mb4), '$.channel')) as binary) = $channel and ($queue is null or cast(json_unquote(json_extract(convert(o.wanted using utf8mb4), '$.queue')) as binary) = $queue)) as operations

-- name: erase_counts
-- Of dead letters, which are gone: the counts add up to nothing, under no name. Whoever adds them up just now finds
-- each where it was, so that the queue's sum stays as it is.
update `laneway_dead_count` set channel = '' where channel = $channel and ($queue is null or queue = $queue)

-- name: uncount_sums
update `laneway_dead_queue` q join `laneway_dead_sum` d on d.queue = q.queue set q.n = q.n - d.n
where d.channel = $channel and ($queue is null or d.queue = $queue)

-- name: keep_sums
insert into `laneway_dead_count` (queue, channel, n)
select d.queue, '', d.n from `laneway_dead_sum` d where d.channel = $channel and ($queue is null or d.queue = $queue)

-- name: erase_sums
delete from `laneway_dead_sum` where channel = $channel and ($queue is null or queue = $queue)

-- name: erase_operations
delete o from `laneway_operation` o where cast(json_unquote(json_extract(convert(o.wanted using utf8mb4), '$.channel')) as binary) = $channel
    and ($queue is null or cast(json_unquote(json_extract(convert(o.wanted using utf8mb4), '$.queue')) as binary) = $queue) and o.state <> 'running'
