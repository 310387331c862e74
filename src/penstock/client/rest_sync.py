"""A rest between two looks."""

from time import sleep as rest

__all__ = ["rest"]
