"""Waiting longer and longer, never in step with others."""

import asyncio
import random


class Backoff:
    """Doubles from ``first`` to ``most`` seconds; each wait is at random between half and all."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._next = first

    def next(self) -> float:
        wait = self._next * random.uniform(0.5, 1)
        self._next = min(2 * self._next, self._most)
        return wait

    def reset(self) -> None:
        self._next = self._first

    async def sleep(self) -> None:
        await asyncio.sleep(self.next())
