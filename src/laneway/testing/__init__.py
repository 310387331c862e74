"""For your own tests: run a worker until nothing is left, and see what was published.

A SQLite file is the test double; ``pytest_plugins = ["laneway.testing.fixtures"]`` brings one.
"""

from .published import assert_published, drain, drain_async, published

__all__ = ["assert_published", "drain", "drain_async", "published"]
