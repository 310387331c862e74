h.settled, h.id
