-- $1: id, locked by us, $2: now. The clock is read after the wait.
select mark, keep_until, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from `penstock_done` where id = $1 for update
