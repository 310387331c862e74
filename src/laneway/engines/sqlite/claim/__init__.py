"""claim: which channels may start how many messages, and what is left of them afterwards."""
