-- Where the history ends that nobody needs any more: no lake has planned what comes after, or a registered
-- reader has not read it. No row: nobody reads the history.
create or replace function "penstock".history_needed_v1() returns table (xid bigint, id bigint)
language sql
as $$
    select n.xid, n.id from (
        (select distinct on (c.lake) c.to_xid as xid, c.to_id as id from "penstock".lake_commit c
        order by c.lake, c.batch desc)
        union all
        select r.xid, r.id from "penstock".history_reader r
    ) n
    order by n.xid, n.id limit 1
$$;
