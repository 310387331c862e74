h.settled is null
