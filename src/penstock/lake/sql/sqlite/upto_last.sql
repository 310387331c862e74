h.id <= {last_id}
