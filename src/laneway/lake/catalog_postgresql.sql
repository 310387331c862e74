-- The lake's catalog on PostgreSQL, which computes counts and checksums itself. The position of a row
-- in the history is (xid, id).

-- name: clock
select clock_timestamp()

-- name: batches
select c.batch, c.from_xid, c.from_id, c.to_xid, c.to_id, c.rows, c.checksum, c.first_ended_at, c.last_ended_at, c.state
from "laneway".lake_commit c
where c.lake = $lake and c.state = any($states)
order by c.batch

-- name: last_batch
-- With the number that the server's next transaction gets.
select c.batch, c.to_xid, c.to_id, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
from "laneway".lake_commit c where c.lake = $lake order by c.batch desc limit 1

-- name: next_batch
-- Where the next batch ends: $rows rows on, or at the last row whose earlier transactions have all ended.
with settled as (
    select h.xid, h.id
    from "laneway".history_v1 h
    where h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
        and h.xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    order by h.xid, h.id
    limit $rows
)
select s.xid, s.id from settled s order by s.xid desc, s.id desc limit 1

-- name: history_rows
-- Rows as the lake keeps them. Times that Arrow cannot hold, infinity among them, become null.
select h.id, h.xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error,
    case when h.first_published_at between c.first and c.last then h.first_published_at end as first_published_at,
    case when h.published_at between c.first and c.last then h.published_at end as published_at,
    case when h.due between c.first and c.last then h.due end as due,
    case when h.claimed_at between c.first and c.last then h.claimed_at end as claimed_at,
    case when h.started_at between c.first and c.last then h.started_at end as started_at,
    h.ended_at, h.payload_size, h.terminal, h.dead
from "laneway".history_v1 h,
    (select timestamptz '0001-01-01 00:00Z' as first, timestamptz '9999-12-31 23:59:59.999999Z' as last) c
where h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
    and h.xid <= $to_xid and (h.xid, h.id) <= ($to_xid, $to_id)

-- name: count_rows
select count(*) from "laneway".history_v1 h
where h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
    and h.xid <= $to_xid and (h.xid, h.id) <= ($to_xid, $to_id)

-- name: plan_batch
-- The number and checksum of the rows as the database sees them; the files must have the same. If two
-- syncs plan the same batch at the same time, the first one's range counts.
insert into "laneway".lake_commit (lake, batch, from_xid, from_id, to_xid, to_id, rows, checksum, first_ended_at, last_ended_at)
select $lake, $batch, $from_xid, $from_id, $to_xid, $to_id, count(*),
    sum(('x' || left(md5(concat_ws(chr(31),
        r.id::text, r.xid::text, r.message_id::text, r.queue, r.channel, r.kind, coalesce(r.priority::text, '~'),
        r.attempt::text, coalesce(r.fence::text, '~'), coalesce(r.worker, '~'), r.outcome, coalesce(r.reason, '~'),
        coalesce(r.error_type, '~'), coalesce(r.error, '~'),
        coalesce((extract(epoch from r.first_published_at) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.published_at) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.due) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.claimed_at) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.started_at) * 1000000)::bigint::text, '~'),
        (extract(epoch from r.ended_at) * 1000000)::bigint::text, coalesce(r.payload_size::text, '~'),
        r.terminal::text, r.dead::text)), 15))::bit(60)::bigint),
    min(r.ended_at), max(r.ended_at)
from ($history:sql) r
on conflict do nothing

-- name: mark
-- Nothing of it was erased meanwhile.
update "laneway".lake_commit c
set state = $state,
    written_at = case when $state = 'written' then clock_timestamp() else c.written_at end,
    verified_at = case when $state = 'verified' then clock_timestamp() else c.verified_at end,
    purged_at = case when $state = 'purged' then clock_timestamp() else c.purged_at end
where c.lake = $lake and c.batch = $batch and c.state = $before and c.rows = $rows and c.checksum = $checksum

-- name: replan
update "laneway".lake_commit c set state = 'planned'
where c.lake = $lake and c.batch = any($batches::bigint[]) and c.state in ('written', 'verified')

-- name: mark_purged
-- A batch is purged when none of its rows are left.
update "laneway".lake_commit c set state = 'purged', purged_at = clock_timestamp()
where c.lake = $lake and c.state = 'verified'
    and not exists (
        select from "laneway".history_v1 h
        where h.xid >= c.from_xid and (h.xid, h.id) > (c.from_xid, c.from_id)
            and h.xid <= c.to_xid and (h.xid, h.id) <= (c.to_xid, c.to_id))

-- name: files
select f.path, f.day, f.batches, f.rows, f.checksum, f.size, f.staged, f.replaces
from "laneway".lake_file f
where f.lake = $lake
order by f.path

-- name: note_file
insert into "laneway".lake_file (lake, path, day, batches, rows, checksum, size)
values ($lake, $path, $day, $batches::bigint[], $rows, $checksum, $size)
on conflict (lake, path) do update set rows = excluded.rows, checksum = excluded.checksum, size = excluded.size

-- name: note_compacted
insert into "laneway".lake_file (lake, path, day, batches, rows, checksum, size, staged, replaces)
values ($lake, $path, $day, $batches::bigint[], $rows, $checksum, $size, $staged, $replaces::text[])

-- name: settle_file
update "laneway".lake_file f set staged = null, replaces = null where f.lake = $lake and f.path = $path

-- name: forget_files
delete from "laneway".lake_file f where f.lake = $lake and f.path = any($paths::text[])

-- name: forget_file
-- If it is still the same: a compaction may have written another one to its path.
delete from "laneway".lake_file f
where f.lake = $lake and f.path = $path and f.rows = $rows and f.checksum = $checksum and f.staged is null

-- name: lakes
select distinct c.lake from "laneway".lake_commit c order by c.lake

-- name: correct_batch
-- Rows of it were erased. Nobody else has changed it meanwhile.
update "laneway".lake_commit c set rows = $rows, checksum = $checksum
where c.lake = $lake and c.batch = $batch and c.rows = $old_rows and c.checksum = $old_checksum

-- name: tenant_rows
select
    (select count(*) from "laneway".message_v1 m where m.channel = $channel and ($queue::text is null or m.queue = $queue::text)) as messages,
    (select count(*) from "laneway".dead d where d.channel = $channel and ($queue::text is null or d.queue = $queue::text)) as dead_letters,
    (select count(*) from "laneway".history h where h.channel = $channel and ($queue::text is null or h.queue = $queue::text)) as history,
    (select count(*) from "laneway".result r where r.channel = $channel and ($queue::text is null or r.queue = $queue::text)) as results,
    (select count(*) from "laneway".flow_held f where f.channel = $channel and ($queue::text is null or f.queue = $queue::text)) as held,
    (select count(*) from (
        select d.queue, d.channel from "laneway".dead_count d union all select d.queue, d.channel from "laneway".dead_total d
    ) c where c.channel = $channel and ($queue::text is null or c.queue = $queue::text)) as counts,
    (select count(*) from "laneway".operation o
        where o.wanted->>'channel' = $channel and ($queue::text is null or o.wanted->>'queue' = $queue::text)) as operations

-- name: erase_counts
-- Of dead letters, which are gone: the counts add up to nothing. What is left over, because somebody adds them up
-- just now, or another letter came, stays in the queue's sum.
with counted as (
    delete from "laneway".dead_count d
    where d.channel = $channel and ($queue::text is null or d.queue = $queue::text) returning d.queue, d.n
),
total as (
    delete from "laneway".dead_total d
    where d.channel = $channel and ($queue::text is null or d.queue = $queue::text) returning d.queue, d.n
)
insert into "laneway".dead_count (queue, channel, n)
select x.queue, '', sum(x.n) from (select * from counted union all select * from total) x
group by x.queue having sum(x.n) <> 0

-- name: erase_operations
delete from "laneway".operation o
where o.wanted->>'channel' = $channel and ($queue::text is null or o.wanted->>'queue' = $queue::text) and o.state <> 'running'

-- name: erase_keys
-- Of messages that have ended: their history says which were in the channel.
delete from "laneway".dedupe d using "laneway".history h
where h.message_id = d.message_id and h.channel = $channel and ($queue::text is null or h.queue = $queue::text)

-- name: erase_results
delete from "laneway".result r where r.channel = $channel and ($queue::text is null or r.queue = $queue::text)

-- name: erase_history
delete from "laneway".history h where h.channel = $channel and ($queue::text is null or h.queue = $queue::text)

-- name: days
-- The days of the history, and how many rows of each may not be purged yet: those after the last batch,
-- those that some lake of the queue has not verified, and those that a registered stream has not read.
with last as (
    select c.to_xid as xid, c.to_id as id from "laneway".lake_commit c where c.lake = $lake order by c.batch desc limit 1
),
every as (
    select n.xid, n.id from (
        select distinct on (c.lake) c.to_xid as xid, c.to_id as id from "laneway".lake_commit c order by c.lake, c.batch desc
    ) n
    order by n.xid, n.id limit 1
),
slow as (
    select r.xid, r.id from "laneway".history_reader r
    where not $force and r.missed_at is null and r.seen_at + r.patience > clock_timestamp()
    order by r.xid, r.id limit 1
),
doubtful as materialized (
    select c.from_xid, c.from_id, c.to_xid, c.to_id from "laneway".lake_commit c where c.state in ('planned', 'written')
)
select (h.ended_at at time zone 'UTC')::date as day, count(*) as rows,
    count(*) filter (where coalesce((h.xid, h.id) > (l.xid, l.id), true)) as unsynced,
    count(*) filter (where (h.xid, h.id) > (e.xid, e.id) or exists (
        select from doubtful d where (h.xid, h.id) > (d.from_xid, d.from_id) and (h.xid, h.id) <= (d.to_xid, d.to_id)
    )) as unverified,
    count(*) filter (where (h.xid, h.id) > (s.xid, s.id)) as unread
from "laneway".history_v1 h
left join last l on true
left join every e on true
left join slow s on true
group by 1
order by 1

-- name: uncounted
select min(h.ended_at)
from "laneway".counting k join "laneway".history_v1 h on h.xid >= k.xid and (h.xid, h.id) > (k.xid, k.id)
where k.begun and h.ended_at < $before::date::timestamp at time zone 'UTC'

-- name: purge_day
select "laneway".purge_day_v1($lake, $day::date, $force)

-- name: behind
-- How many rows are not in the lake yet, since when, and how many of them may not be read yet.
select count(*), min(h.ended_at), count(*) filter (where h.xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
from "laneway".history_v1 h
where h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)

-- name: readers
-- Those that are waited for come first, of these the slowest.
select r.name, r.seen_at, r.seen_at + r.patience, r.missed_at,
    (select count(*) from "laneway".history_v1 h where h.xid >= r.xid and (h.xid, h.id) > (r.xid, r.id))
from "laneway".history_reader r
order by r.missed_at is not null, r.seen_at + r.patience <= clock_timestamp(), r.xid, r.id

-- name: forget_reader
select "laneway".read_history_v1($reader, null)

-- name: settings
select s.history, s.history_days from "laneway".setting s

-- name: live_rows
select m.id as message_id, m.queue, m.channel, m.kind, m.state, m.attempt,
    case when m.due between '0001-01-01 00:00Z' and '9999-12-31 23:59:59.999999Z' then greatest(m.due, m.published_at) end as due, m.claimed_at, clock.now as seen_at
from "laneway".message_v1 m, (select $seen_at::timestamptz as now) clock
union all
select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, clock.now
from "laneway".dead_letter_v1 d, (select $seen_at::timestamptz as now) clock

-- name: queue_stats
select n.queue, n.waiting, n.scheduled, n.leased, n.dead from "laneway".queue_stats_v1 n order by n.queue

-- name: partition
select "laneway".partition_v1($day::timestamptz)

-- name: load
copy "laneway".history (message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason, error_type, error,
    first_published_at, published_at, due, claimed_at, started_at, ended_at, payload_size, terminal, dead)
from stdin (format csv, encoding 'UTF8')
