"""Periodic maintenance: expired leases, lapsed messages, deleting what is no longer needed."""
