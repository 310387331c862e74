"""The worker: claims messages, runs their handlers and writes the outcomes.

Nothing is imported here: the heartbeat process must start fast. See :class:`laneway.Worker`.
"""
