-- The last settled row after a place: below {settled} every transaction has ended, so nothing can
-- appear before it any more.
select h.xid, h.id
from {schema}.history_v1 h
where {filters}
    and h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id}) and h.xid < {settled}
order by h.xid desc, h.id desc
limit 1
