"""Health, metrics, traces and logs of a worker."""
