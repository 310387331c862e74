-- $1: (message id, fence) in order. Those leases that are there, whoever is at them.
select l.message_id, l.fence
from $1:pairs x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
