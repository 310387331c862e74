"""Longer and longer waits, spread at random so that workers do not retry in step."""

import asyncio
import random


class Backoff:
    """Doubles from ``initial`` to ``longest`` seconds; each wait is a random half to all of it."""

    def __init__(self, initial: float, longest: float) -> None:
        self._initial = initial
        self._longest = longest
        self._next = initial

    def next(self) -> float:
        wait = self._next * random.uniform(0.5, 1)
        self._next = min(2 * self._next, self._longest)
        return wait

    def reset(self) -> None:
        self._next = self._initial

    async def sleep(self) -> None:
        await asyncio.sleep(self.next())
