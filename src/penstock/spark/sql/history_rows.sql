-- Rows of a range of (xid, id), as the planning snapshot saw them: every task of a read sees the same.
select {columns}
from {schema}.history_v1 h
where {filters}
    and h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
    and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
    and (h.xid < {settled} or pg_visible_in_snapshot(cast(cast(h.xid as text) as xid8), cast({snapshot} as pg_snapshot)))
