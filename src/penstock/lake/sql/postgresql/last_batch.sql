-- With the number that the server's next transaction gets.
select c.batch, c.to_xid, c.to_id, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
from {schema}.lake_commit c where c.lake = {lake} order by c.batch desc limit 1
