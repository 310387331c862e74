-- name: history_last
-- The last settled row after a position. Every transaction below $settled has ended, so no row can
-- appear before it any more.
select h.xid, h.id
from "laneway".history_v1 h
where $filters:sql
    and h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id) and h.xid < $settled
order by h.xid desc, h.id desc
limit 1

-- name: read_history
-- What comes after this position is kept for the stream; see read_history_v1.
select "laneway".read_history_v1($stream, $xid, $id, $through, $patience::interval)

-- name: history_has
-- Whether the history still has the row at which a stream stopped, or any before it.
select exists (select from "laneway".history_v1 h where h.xid <= $xid and (h.xid, h.id) <= ($xid, $id))

-- name: watermark
-- How many rows wait behind the watermark, and which transaction holds it back.
with settled as (
    select pg_snapshot_xmin(pg_current_snapshot()) as xid
),
holder as (
    select a.pid, a.application_name as name, a.usename as role, a.state, a.xact_start
    from pg_stat_activity a
    where a.backend_xid is not null and a.pid <> pg_backend_pid()
    union all
    select null, p.gid, p.owner, 'prepared', p.prepared from pg_prepared_xacts p
    order by xact_start
    limit 1
)
select cast(cast(s.xid as text) as bigint),
    (select count(*) from "laneway".history_v1 h where h.xid >= cast(cast(s.xid as text) as bigint)),
    o.pid, o.name, o.role, o.state, o.xact_start, clock_timestamp()
from settled s left join holder o on true
