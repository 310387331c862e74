-- Private: before which stamp every lake is certain to have the history; null if there is no lake. One
-- lookup per lake, however many batches there are.
create or replace view `laneway_lake_sure` as
with recursive name (lake) as (
    select min(c.lake) from `laneway_lake_commit` c
    union all
    select (select min(c.lake) from `laneway_lake_commit` c where c.lake > n.lake) from name n where n.lake is not null
)
select min(coalesce(
    (select min(c.from_xid) from `laneway_lake_commit` c where c.lake = n.lake and c.state in ('planned', 'written')),
    (select c.to_xid from `laneway_lake_commit` c where c.lake = n.lake order by c.batch desc limit 1))) as stamp
from name n
where n.lake is not null;
