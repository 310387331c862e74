select c.batch, c.from_xid, c.from_id, c.to_xid, c.to_id, c.rows, c.checksum, c.first_ended_at, c.last_ended_at, c.state
from {schema}.lake_commit c
where c.lake = {lake} and c.state = any({states})
order by c.batch
