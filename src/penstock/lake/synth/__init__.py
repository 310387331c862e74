"""A made-up history that behaves like a real one: for trying reports, and for tests."""

from .history import Story, tell

__all__ = ["Story", "tell"]
