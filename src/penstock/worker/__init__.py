"""The worker: claims messages, hands them to functions, and writes down what became of them.

Nothing is imported here: the pulse process must start fast. See :class:`penstock.Worker`.
"""
