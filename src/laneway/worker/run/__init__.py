"""One run of a worker: claiming, waiting, upkeep and shutdown."""
