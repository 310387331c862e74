"""Cases of claims by kind."""
