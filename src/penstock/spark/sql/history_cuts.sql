-- Where to cut a range of (xid, id) so that each part has as many rows.
select p.xid, p.id
from (
    select h.xid, h.id, row_number() over (order by h.xid, h.id) as place
    from {schema}.history_v1 h
    where {filters}
        and h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
        and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
        and (h.xid < {settled} or pg_visible_in_snapshot(cast(cast(h.xid as text) as xid8), cast({snapshot} as pg_snapshot)))
) p
where p.place % {rows} = 0
order by p.place
