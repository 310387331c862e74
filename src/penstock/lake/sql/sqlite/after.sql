h.id > {from_id}
