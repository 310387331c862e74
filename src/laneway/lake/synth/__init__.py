"""A synthetic history that behaves like a real one, for trying reports and for tests."""

from .history import SyntheticHistory, synthesize

__all__ = ["SyntheticHistory", "synthesize"]
