select count(*) from {schema}.history_v1 h
where h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
    and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
