-- The days of the history, and of each how much may not go yet, and why: what is after the last batch, and
-- what some lake of the queue does not hold for certain.
with last as (
    select c.to_xid as xid, c.to_id as id from {schema}.lake_commit c where c.lake = {lake} order by c.batch desc limit 1
),
every as (
    select n.xid, n.id from (
        select distinct on (c.lake) c.to_xid as xid, c.to_id as id from {schema}.lake_commit c order by c.lake, c.batch desc
    ) n
    order by n.xid, n.id limit 1
),
slow as (
    select r.xid, r.id from {schema}.history_reader r order by r.xid, r.id limit 1
),
doubtful as materialized (
    select c.from_xid, c.from_id, c.to_xid, c.to_id from {schema}.lake_commit c where c.state in ('planned', 'written')
)
select (h.ended_at at time zone 'UTC')::date as day, count(*) as rows,
    count(*) filter (where coalesce((h.xid, h.id) > (l.xid, l.id), true)) as unsynced,
    count(*) filter (where (h.xid, h.id) > (e.xid, e.id) or exists (
        select from doubtful d where (h.xid, h.id) > (d.from_xid, d.from_id) and (h.xid, h.id) <= (d.to_xid, d.to_id)
    )) as unverified,
    count(*) filter (where (h.xid, h.id) > (s.xid, s.id)) as unread
from {schema}.history_v1 h
left join last l on true
left join every e on true
left join slow s on true
group by 1
order by 1
