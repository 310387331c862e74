"""How plans are run: on connections of our own, or on one that the caller gave."""
