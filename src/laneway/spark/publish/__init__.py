"""Bulk publish: a frame, or each batch of a stream, into the queue."""
