"""`laneway chaos`: real processes, injected faults, ledgers outside the database, and a verdict."""
