h.settled is not null and h.settled <= {last_xid} and (h.settled < {last_xid} or h.id <= {last_id})
