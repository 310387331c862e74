"""One file per group of verbs."""
