"""`make demo`: the queue at work, with worker processes, troubles, and a verdict."""
