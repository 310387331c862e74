"""How leases and messages end: the verbs of lease holders, cancel, and what they share."""
