"""The bell that rings when a message with a kept result ends: all who wait in one client share it.

A ring is a hint: whoever waits also looks again after a while. MySQL has no bell.
"""

import asyncio
import logging
import time
from datetime import timedelta

from laneway.client.shared.options import ClientAddress
from laneway.drivers.choice import open_notifier
from laneway.drivers.listener import LocalNotifier, Notifier
from laneway.errors import LanewayError

from .core import AsyncCore

__all__ = ["RING", "AsyncEndBell"]

_log = logging.getLogger("laneway")

RING = "kept results"
"""What the database calls out."""

_ASLEEP_FOR = timedelta(seconds=60)
# Seconds.
_RENEW_EVERY = 45.0
_LISTEN = 1.0
_AT_MOST_EVERY = 0.02


class AsyncEndBell:
    """Listens while anybody waits; the connection stays open for the next one until the client is
    closed."""

    def __init__(self, core: AsyncCore, address: ClientAddress) -> None:
        self._core = core
        self._address = address
        self._ring = asyncio.Event()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, core: AsyncCore, address: ClientAddress) -> "AsyncEndBell":
        """The client's one bell."""
        if not isinstance(core.end_bell, cls):
            core.end_bell = cls(core, address)
            core.at_close.add(core.end_bell.close)
        return core.end_bell

    def next_ring(self) -> asyncio.Event:
        """Set at the next ring; to be taken before looking, so that none is missed."""
        return self._ring

    async def wait(self, ring: asyncio.Event, seconds: float) -> None:
        """Until that ring, or for so long."""
        self._waiting += 1
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._listen())
            async with asyncio.timeout(seconds):
                await ring.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        self._core.at_close.discard(self.close)
        self._core.end_bell = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self) -> None:
        notifier: Notifier | None = None
        renew_at = 0.0
        try:
            while True:
                if notifier is None:
                    notifier = await self._open()
                if self._waiting and time.monotonic() >= renew_at:
                    renew_at = time.monotonic() + _RENEW_EVERY
                    await self._ask_to_be_told()
                if await notifier.wait(_LISTEN):
                    ring, self._ring = self._ring, asyncio.Event()
                    ring.set()
                    await asyncio.sleep(_AT_MOST_EVERY)
        finally:
            if notifier is not None:
                await notifier.close()

    async def _open(self) -> Notifier:
        try:
            channel = await self._core.run(self._core.engine.notify_channel())
        except LanewayError as error:
            _log.info("waiting for messages by polling: %s", error)
            return LocalNotifier()
        url, pooler = self._address.url, self._address.pooler
        return open_notifier(url, channel=channel, wanted=frozenset([RING]), pooler=pooler)

    async def _ask_to_be_told(self) -> None:
        worker = f"{RING} of {self._core.options.worker}"
        try:
            await self._core.run(self._core.engine.sleep((RING,), worker, _ASLEEP_FOR))
        except LanewayError as error:
            _log.debug("could not ask to be told of results: %s", error)
