h.settled >= {from_xid} and (h.settled > {from_xid} or h.id > {from_id})
