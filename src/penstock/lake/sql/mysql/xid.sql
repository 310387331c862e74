h.settled
