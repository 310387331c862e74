-- The lake's catalog on MySQL, MariaDB and SQLite: what they have in common. Times are microseconds
-- since 1970. What a column holds is known by its name: see mysql_sqlite.py.

-- name: batches
select c.batch, c.from_xid, c.from_id, c.to_xid, c.to_id, c.`rows`, c.checksum, c.first_ended_at, c.last_ended_at, c.state
from `laneway_lake_commit` c
where c.lake = $lake and c.state in ($states...)
order by c.batch

-- name: last_batch
select c.batch, c.to_xid, c.to_id from `laneway_lake_commit` c where c.lake = $lake order by c.batch desc limit 1

-- name: all_batches
-- Of every lake.
select c.lake, c.from_xid, c.from_id, c.to_xid, c.to_id, c.state from `laneway_lake_commit` c order by c.lake, c.batch

-- name: mark
-- Nothing of it was erased meanwhile.
update `laneway_lake_commit` set state = $state
where lake = $lake and batch = $batch and state = $before and `rows` = $rows and checksum = $checksum:text

-- name: replan
update `laneway_lake_commit` set state = 'planned'
where lake = $lake and batch in ($batches...) and state in ('written', 'verified')

-- name: files
select f.path, f.day, f.batches, f.`rows`, f.checksum, f.size, f.staged, f.replaces
from `laneway_lake_file` f
where f.lake = $lake
order by f.path

-- name: note_file
replace into `laneway_lake_file` (lake, path, day, batches, `rows`, checksum, size)
values ($lake, $path, $day:micros, $batches:json, $rows, $checksum:text, $size)

-- name: note_compacted
insert into `laneway_lake_file` (lake, path, day, batches, `rows`, checksum, size, staged, replaces)
values ($lake, $path, $day:micros, $batches:json, $rows, $checksum:text, $size, $staged, $replaces:json)

-- name: settle_file
update `laneway_lake_file` set staged = null, replaces = null where lake = $lake and path = $path

-- name: forget_files
delete from `laneway_lake_file` where lake = $lake and path in ($paths...)

-- name: forget_file
-- If it is still the same: a compaction may have written another one to its path.
delete from `laneway_lake_file`
where lake = $lake and path = $path and `rows` = $rows and checksum = $checksum:text and staged is null

-- name: lakes
select distinct c.lake from `laneway_lake_commit` c order by c.lake

-- name: correct_batch
-- Rows of it were erased. Nobody else has changed it meanwhile.
update `laneway_lake_commit` set `rows` = $rows, checksum = $checksum:text
where lake = $lake and batch = $batch and `rows` = $old_rows and checksum = $old_checksum:text

-- name: erase_keys
-- Of messages that have ended: their history says which were in the channel.
delete from `laneway_dedupe` where message_id in (
    select h.message_id from `laneway_history` h where h.channel = $channel and ($queue is null or h.queue = $queue))

-- name: erase_results
delete from `laneway_result` where channel = $channel and ($queue is null or queue = $queue)

-- name: erasable
select h.id from `laneway_history` h
where h.id > $seen and h.channel = $channel and ($queue is null or h.queue = $queue)
order by h.id limit $limit

-- name: purge
delete from `laneway_history` where id in ($ids...)

-- name: count_day
select count(*) from `laneway_history` h where h.ended_at >= $begins and h.ended_at < $ends

-- name: readers
-- There are none: a history stream needs PostgreSQL.
select null as name from `laneway_lake_commit` c where c.batch < 0

-- name: queue_stats
select n.queue, n.waiting, n.scheduled, n.leased, n.dead from `laneway_queue_stats_v1` n order by n.queue

-- name: load
insert into `laneway_history` (message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason, error_type, error,
    first_published_at, published_at, due, claimed_at, started_at, ended_at, payload_size, terminal, dead)
values ($message_id, $queue, $channel, $kind, $priority, $attempt, $fence, $worker, $outcome, $reason, $error_type, $error,
    $first_published_at, $published_at, $due, $claimed_at, $started_at, $ended_at, $payload_size, $terminal, $dead)
