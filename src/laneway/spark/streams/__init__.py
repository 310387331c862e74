"""Streams out of the queue: claimed messages, and the history."""
