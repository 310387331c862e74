h.id <= {to_id}
