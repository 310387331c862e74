"""Batch reads: history, messages and dead letters as frames."""
