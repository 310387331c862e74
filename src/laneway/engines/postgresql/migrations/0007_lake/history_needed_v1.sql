-- Up to where the history is no longer needed: what comes after, no lake has planned or a registered reader
-- has not read. No row: nobody reads the history.
--
-- A number that this server has not given yet is of another one, whose dump was restored here: what is
-- written now comes before it, so all is needed.
create or replace function "laneway".history_needed_v1() returns table (xid bigint, id bigint)
language sql
as $$
    select case when n.known then n.xid else 0 end, case when n.known then n.id else 0 end from (
        select e.xid, e.id, e.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint as known from (
            (select distinct on (c.lake) c.to_xid as xid, c.to_id as id from "laneway".lake_commit c
            order by c.lake, c.batch desc)
            union all
            select r.xid, r.id from "laneway".history_reader r
        ) e
    ) n
    order by 1, 2 limit 1
$$;
