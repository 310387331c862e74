-- All batches of all lakes, in their order.
select c.lake, c.from_xid, c.from_id, c.to_xid, c.to_id, c.state from {lake_commit} c order by c.lake, c.batch
