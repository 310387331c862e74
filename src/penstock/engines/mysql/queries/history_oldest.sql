-- $1: how many. Ids follow the time, but for what was in a long transaction. The last column: whether every
-- lake that is in use holds it for certain. (Of a stamp that a batch has cut, nothing is certain.)
select h.id, h.ended_at, coalesce(h.settled < s.stamp, s.stamp is null)
from `penstock_history` h
cross join `penstock_lake_sure` s
order by h.id limit $1
