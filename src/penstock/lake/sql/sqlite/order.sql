h.id
