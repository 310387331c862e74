create view "laneway".lake_commit_v1 as
select c.lake, c.batch, c.from_xid, c.from_id, c.to_xid, c.to_id, c.rows, c.checksum, c.first_ended_at, c.last_ended_at,
    c.state, c.planned_at, c.written_at, c.verified_at, c.purged_at,
    array(select f.path from "laneway".lake_file f where f.lake = c.lake and c.batch = any(f.batches) order by f.path) as files
from "laneway".lake_commit c;
