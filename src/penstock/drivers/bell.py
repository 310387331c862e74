"""Bells: how a sleeping worker learns that something came, without asking all the time."""

import asyncio
from typing import Protocol


class Bell(Protocol):
    """A ring is a hint: it may come for nothing, and it may be missed, so waiters also poll."""

    async def wait(self, seconds: float) -> bool:
        """Until it rings, or for so many ``seconds``; says whether it rang since the last wait."""
        ...

    def ring(self) -> None:
        """Wakes the waiter from inside this process."""
        ...

    async def close(self) -> None: ...


class QuietBell:
    """Rings only from inside: for databases and poolers that pass no notifications on."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._rung.wait()
            except TimeoutError:
                return False
        self._rung.clear()
        return True

    def ring(self) -> None:
        self._rung.set()

    async def close(self) -> None:
        """Nothing is open."""
