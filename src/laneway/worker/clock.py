"""The worker's own clock, and longer and longer waits."""

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial

# The worker's own clock, in seconds: monotonic, and it also counts the time in which the machine
# was suspended or the process was stopped.

now: Callable[[], float]

if hasattr(time, "CLOCK_BOOTTIME"):  # Linux, where monotonic() stands still during a suspend
    now = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
else:
    now = time.monotonic

# Longer and longer waits, spread at random so that workers do not retry in step.


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
