-- Batch reads from PostgreSQL. A read is divided into partitions at the rows that *_cuts return:
-- *_rows reads those after one such row up to the next. *_filters are the options of the read.

-- name: snapshot
-- What is committed now, and the transaction number below which all have ended.
select cast(s as text), cast(cast(pg_snapshot_xmin(s) as text) as bigint) from pg_current_snapshot() s

-- name: history_filters
($queue::text is null or h.queue = $queue::text)
    and ($channel::text is null or h.channel = $channel::text)
    and ($kind::text is null or h.kind = $kind::text)
    and ($since::timestamptz is null or h.ended_at >= $since::timestamptz)
    and ($until::timestamptz is null or h.ended_at < $until::timestamptz)

-- name: history_size
-- The size of the history in bytes; this needs no statistics.
select coalesce(sum(pg_relation_size(i.inhrelid)), 0)::bigint
from pg_inherits i
where i.inhparent = to_regclass('"laneway".history')

-- name: history_cuts
select p.xid, p.id
from (
    select h.xid, h.id, row_number() over (order by h.xid, h.id) as place
    from "laneway".history_v1 h
    where $filters:sql
        and h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
        and h.xid <= $to_xid and (h.xid, h.id) <= ($to_xid, $to_id)
        and (h.xid < $settled or pg_visible_in_snapshot(cast(cast(h.xid as text) as xid8), cast($snapshot as pg_snapshot)))
) p
where p.place % $rows = 0
order by p.place

-- name: history_sample
-- The cuts of a large range, from a sample of the table's pages: the parts have about the same
-- number of rows, and not all of them have to be sorted.
select p.xid, p.id
from (
    select h.xid, h.id, row_number() over (order by h.xid, h.id) as place
    from "laneway".history h tablesample system ($percent) repeatable (1)
    where $filters:sql
        and h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
        and h.xid <= $to_xid and (h.xid, h.id) <= ($to_xid, $to_id)
) p
where p.place % $rows = 0
order by p.place

-- name: history_rows
-- As the snapshot of the planning saw them: all tasks of a read see the same rows.
select $columns:names
from "laneway".history_v1 h
where $filters:sql
    and h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id)
    and h.xid <= $to_xid and (h.xid, h.id) <= ($to_xid, $to_id)
    and (h.xid < $settled or pg_visible_in_snapshot(cast(cast(h.xid as text) as xid8), cast($snapshot as pg_snapshot)))

-- name: message_filters
($queue::text is null or h.queue = $queue::text)
    and ($channel::text is null or h.channel = $channel::text)
    and ($kind::text is null or h.kind = $kind::text)
    and ($since::timestamptz is null or h.published_at >= $since::timestamptz)
    and ($until::timestamptz is null or h.published_at < $until::timestamptz)

-- name: message_cuts
select p.id
from (
    select h.id, row_number() over (order by h.id) as place
    from "laneway".message_v1 h
    where $filters:sql and h.id > $from_id and h.id <= $to_id
) p
where p.place % $rows = 0
order by p.place

-- name: message_rows
select $columns:names
from (
    select m.id, m.queue, m.channel, m.kind, m.key, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.content_type, cast(m.headers as text) as headers, m.payload_size, m.payload, m.due,
        m.expires_at, m.state, m.fence, m.worker, m.claimed_at, m.until
    from "laneway".message_v1 m
) h
where $filters:sql and h.id > $from_id and h.id <= $to_id

-- name: dead_letter_filters
($queue::text is null or h.queue = $queue::text)
    and ($channel::text is null or h.channel = $channel::text)
    and ($kind::text is null or h.kind = $kind::text)
    and ($since::timestamptz is null or h.died_at >= $since::timestamptz)
    and ($until::timestamptz is null or h.died_at < $until::timestamptz)

-- name: dead_letter_cuts
select p.id
from (
    select h.id, row_number() over (order by h.id) as place
    from "laneway".dead_letter_v1 h
    where $filters:sql and h.id > $from_id and h.id <= $to_id
) p
where p.place % $rows = 0
order by p.place

-- name: dead_letter_rows
select $columns:names
from (
    select d.id, d.queue, d.channel, d.kind, d.key, d.priority, d.published_at, d.first_published_at, d.attempt,
        d.max_attempts, d.content_type, cast(d.headers as text) as headers, d.payload_size, d.payload, d.died_at,
        d.reason, d.error_type, d.error
    from "laneway".dead_letter_v1 d
) h
where $filters:sql and h.id > $from_id and h.id <= $to_id
