"""Claiming: find the channels that are due, lock them, and lease their messages fairly."""
