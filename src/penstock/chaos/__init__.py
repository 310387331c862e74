"""`penstock chaos`: real processes, real faults, a ledger outside the database, and a verdict."""
