"""How long a call waits for the other end, which may be silent without having closed anything."""
