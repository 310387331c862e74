-- $1: how many. Ids follow the time, but for what was in a long transaction. The last column: whether every
-- lake that is in use holds it for certain. (Of a stamp that a batch has cut, nothing is certain.)
select h.id, h.ended_at, coalesce(h.settled < s.sure, s.sure is null)
from `penstock_history` h
cross join (
    select min(b.sure) as sure from (
        select coalesce(min(case when c.state in ('planned', 'written') then c.from_xid end), max(c.to_xid)) as sure
        from `penstock_lake_commit` c group by c.lake) b
) s
order by h.id limit $1
