"""The heartbeat: a process beside the worker that extends the leases of running handlers."""
