"""settle: how leases and messages end."""
