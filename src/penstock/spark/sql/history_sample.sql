-- Where to cut a large range of (xid, id): from a sample of the table's pages, so that each part has
-- about as many rows, without sorting all of them.
select p.xid, p.id
from (
    select h.xid, h.id, row_number() over (order by h.xid, h.id) as place
    from {schema}.history h tablesample system ({percent}) repeatable (1)
    where {filters}
        and h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
        and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
) p
where p.place % {rows} = 0
order by p.place
