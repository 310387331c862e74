h.settled is not null and h.settled <= {to_xid} and (h.settled < {to_xid} or h.id <= {to_id})
