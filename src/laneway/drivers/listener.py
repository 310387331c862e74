"""Notifiers: how an idle worker learns of new messages without polling all the time."""

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from .postgresql import Pooled


class Notifier(Protocol):
    """A notification is a hint: it may come for nothing or be missed, so waiters also poll."""

    async def wait(self, seconds: float) -> bool:
        """Waits for a notification, at most ``seconds``; True if one came since the last wait."""

    def wake(self) -> None:
        """Wakes the waiter from inside this process."""

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


# A notifier with a connection of its own that listens, is probed, and is replaced when dead.

T = TypeVar("T")
_log = logging.getLogger("laneway")
# Seconds.
_PROBE_EVERY = 10.0
PATIENCE = 5.0
_FIRST_DELAY = 0.1
_MOST_DELAY = 5.0
_NOT_HEARD_DELAY = 300.0
_CLOSE_AGAIN = 0.1


class Listener(Protocol):
    """One connection that listens."""

    async def receive(self, seconds: float) -> list[str]:
        """The payloads that came, an empty list if none did in time."""
        ...

    async def notify(self, payload: str) -> None: ...

    async def probe(self) -> None:
        """Raises if the other end is gone."""
        ...

    async def close(self) -> None: ...


class ListenNotifier(LocalNotifier):
    """Wakes for the ``wanted`` payloads; without a connection only from inside this process."""

    def __init__(self, connect: Callable[[], Awaitable[Listener]], wanted: frozenset[str]) -> None:
        super().__init__()
        self._connect = connect
        self._wanted = wanted
        self.listening = asyncio.Event()
        """Set while notifications are known to arrive."""
        self._task = asyncio.create_task(self._keep_listening())

    async def close(self) -> None:
        # Before Python 3.12 asyncio.wait_for can swallow a cancellation: cancel until it has ended.
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CLOSE_AGAIN)

    async def _keep_listening(self) -> None:
        delay = _FIRST_DELAY
        while True:
            try:
                await self._listen()
            except Pooled:
                delay = _NOT_HEARD_DELAY
                _log.debug("no notifications through a pooler: workers poll")
            except _NotHeard:
                delay = _NOT_HEARD_DELAY
                _log.warning(
                    "notifications do not arrive, perhaps because of a pooler in transaction mode: "
                    "workers poll instead; set pooler=True to stop trying"
                )
            except Exception as error:  # of any driver; the connection is replaced
                if self.listening.is_set():
                    delay = _FIRST_DELAY
                _log.info("the listening connection broke, opening another: %s", error)
            self.listening.clear()
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(2 * delay, _MOST_DELAY)

    async def _listen(self) -> None:
        listener = await _soon(self._connect())
        try:
            await self._test(listener)
            self.listening.set()
            self.wake()  # for what came while nothing listened
            while True:
                payloads = await listener.receive(_PROBE_EVERY)
                if not payloads:
                    await _soon(listener.probe())
                if not self._wanted.isdisjoint(payloads):
                    self.wake()
        finally:
            with suppress(Exception):
                await _soon(listener.close())

    async def _test(self, listener: Listener) -> None:
        """A pooler lets a client listen to a connection that is somebody else's a moment later."""
        token = secrets.token_hex(8)
        await _soon(listener.notify(token))
        try:
            async with asyncio.timeout(PATIENCE):
                while token not in await listener.receive(PATIENCE):
                    pass
        except TimeoutError:
            raise _NotHeard from None


class _NotHeard(Exception):
    """The connection works, but notifications do not arrive."""


async def _soon(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, PATIENCE)
