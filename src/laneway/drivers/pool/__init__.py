"""A small connection pool, for drivers without one that suits us."""
