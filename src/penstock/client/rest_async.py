"""A rest between two looks, for asyncio."""

from asyncio import sleep as rest

__all__ = ["rest"]
