-- $1: (message id, fence) in order, $2: now. Those leases that nobody else is at, locked from here on.
select l.message_id, l.fence, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:pairs x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
for update skip locked
