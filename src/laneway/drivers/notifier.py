"""Notifiers: how an idle worker learns of new messages without polling all the time."""

import asyncio
from typing import Protocol


class Notifier(Protocol):
    """A notification is a hint: it may come for nothing or be missed, so waiters also poll."""

    async def wait(self, seconds: float) -> bool:
        """Waits for a notification, at most ``seconds``; True if one came since the last wait."""
        ...

    def wake(self) -> None:
        """Wakes the waiter from inside this process."""
        ...

    async def close(self) -> None: ...


class LocalNotifier:
    """Woken from inside this process only: for databases and poolers without notifications."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        if not self._woken.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        self._woken.set()

    async def close(self) -> None:
        """Nothing is open."""
