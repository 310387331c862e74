"""A bell on a connection of its own that listens, is probed, and is built anew when it is dead."""

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from .bell import QuietBell

T = TypeVar("T")

_log = logging.getLogger("penstock")

# Seconds.
_PROBE_EVERY = 10.0
_PATIENCE = 5.0
_FIRST_DELAY = 0.1
_MOST_DELAY = 5.0
_DEAF_DELAY = 300.0


class Line(Protocol):
    """One connection that listens."""

    async def hear(self, seconds: float) -> list[str]:
        """The payloads that came; nothing if none did in time."""
        ...

    async def ring(self, payload: str) -> None: ...

    async def probe(self) -> None:
        """Raises if the other end is gone."""
        ...

    async def close(self) -> None: ...


class ListeningBell(QuietBell):
    """Rings for the ``wanted`` payloads. Without a connection it is only a quiet bell."""

    def __init__(self, connect: Callable[[], Awaitable[Line]], wanted: frozenset[str]) -> None:
        super().__init__()
        self._connect = connect
        self._wanted = wanted
        self.hears = asyncio.Event()
        """Set while the line is known to work."""
        self._task = asyncio.create_task(self._keep_listening())

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _keep_listening(self) -> None:
        delay = _FIRST_DELAY
        while True:
            try:
                await self._listen()
            except _Deaf:
                delay = _DEAF_DELAY
                _log.warning(
                    "notifications do not arrive, perhaps because of a pooler in transaction mode: "
                    "workers poll; say pooler=True to stop trying"
                )
            except Exception as error:  # of any driver; the line is built anew
                if self.hears.is_set():
                    delay = _FIRST_DELAY
                _log.info("the listening connection broke, another is opened: %s", error)
            self.hears.clear()
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(2 * delay, _MOST_DELAY)

    async def _listen(self) -> None:
        line = await _soon(self._connect())
        try:
            await self._test(line)
            self.hears.set()
            self.ring()  # for what came while nobody listened
            while True:
                heard = await line.hear(_PROBE_EVERY)
                if not heard:
                    await _soon(line.probe())
                if not self._wanted.isdisjoint(heard):
                    self.ring()
        finally:
            with suppress(Exception):
                await _soon(line.close())

    async def _test(self, line: Line) -> None:
        """A pooler lets a client listen to a connection that is somebody else's a moment later."""
        token = secrets.token_hex(8)
        await _soon(line.ring(token))
        try:
            async with asyncio.timeout(_PATIENCE):
                while token not in await line.hear(_PATIENCE):
                    pass
        except TimeoutError:
            raise _Deaf from None


class _Deaf(Exception):
    """The connection works, but what is rung does not come back."""


async def _soon(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, _PATIENCE)
