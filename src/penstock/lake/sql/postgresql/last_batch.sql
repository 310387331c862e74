select c.batch, c.to_xid, c.to_id from {schema}.lake_commit c where c.lake = {lake} order by c.batch desc limit 1
