"""How readers rest between two looks, for asyncio, and the bell that rings when a message with a
kept result ends."""

import asyncio
import logging
import time
from asyncio import sleep as pause
from datetime import timedelta

from laneway.client.shared.options import ClientAddress
from laneway.drivers.choice import open_notifier
from laneway.drivers.listener import LocalNotifier, Notifier
from laneway.errors import DatabaseFailed, LanewayError

from .database import AsyncDatabase

# How readers rest between two looks, for asyncio: until the notifier wakes them, or for a while.
#
# Ringing costs whoever tells, so a reader asks for it only once it has been idle, and no longer
# when it is busy reading. A notification is a hint: the reader looks again after a while in any
# case.

__all__ = ["RING", "AsyncEndBell", "AsyncIdleWait", "check_loop", "pause"]

_log = logging.getLogger("laneway")


def check_loop(verb: str, connection: object) -> None:
    """Here an event loop is what it needs."""


_ASLEEP_FOR = timedelta(seconds=60)
# Seconds.
_RENEW_EVERY = 45.0
_SLEEPY_AFTER = 0.2
_FIRST = 0.01
_MOST = 1.0
_BUSY_LOOKS = 3


class AsyncIdleWait:
    """The rest of one reader; the notifier gets the name of its mailbox."""

    def __init__(self, database: AsyncDatabase, address: ClientAddress) -> None:
        self._database = database
        self._address = address
        self._notifier: Notifier | None = None
        self._mailbox = ""
        self._asleep_since: float | None = None
        self._busy = 0

    async def until_next(self, mailbox: str, idle: float) -> None:
        """After a look that brought nothing, ``idle`` seconds after the last that did."""
        self._busy = 0
        if idle < _SLEEPY_AFTER:
            await pause(max(idle / 4, _FIRST))
        elif self._notifier is None or not self._is_asleep(mailbox):
            await self._fall_asleep(mailbox)  # and look once more
        else:
            await self._notifier.wait(min(idle / 4, _MOST))

    async def found(self) -> None:
        """After a look that brought something."""
        self._busy += 1
        if self._asleep_since is not None and self._busy >= _BUSY_LOOKS:
            await self._note(None)

    async def close(self) -> None:
        if self._asleep_since is not None:
            await self._note(None)
        notifier, self._notifier = self._notifier, None
        if notifier is not None:
            self._database.at_close.discard(self.close)
            await notifier.close()

    def _is_asleep(self, mailbox: str) -> bool:
        since = self._asleep_since
        known = since is not None and mailbox == self._mailbox
        return known and time.monotonic() < (since or 0.0) + _RENEW_EVERY

    async def _fall_asleep(self, mailbox: str) -> None:
        if mailbox != self._mailbox:
            await self.close()
            self._mailbox = mailbox
        if self._notifier is None:
            self._notifier = await self._open_notifier(mailbox)
            self._database.at_close.add(self.close)
        await self._note(_ASLEEP_FOR)

    async def _open_notifier(self, mailbox: str) -> Notifier:
        try:
            channel = await self._database.run(self._database.engine.claims.notify_channel())
        except DatabaseFailed as error:
            _log.info(
                "a reader of events polls, because it may not ask for notifications: %s", error
            )
            return LocalNotifier()
        url, pooler = self._address.url, self._address.pooler
        return open_notifier(url, channel=channel, wanted=frozenset([mailbox]), pooler=pooler)

    async def _note(self, length: timedelta | None) -> None:
        """Tells the database whether to ring; in vain at worst, for the reader also polls."""
        self._asleep_since = None if length is None else time.monotonic()
        mailbox = self._mailbox
        try:
            await self._database.run(
                self._database.engine.claims.sleep((mailbox,), mailbox, length)
            )
        except LanewayError as error:
            _log.debug("a reader of events could not be noted as asleep or awake: %s", error)


# The bell that rings when a message with a kept result ends: all who wait in one client share it.
#
# A ring is a hint: whoever waits also looks again after a while. MySQL has no bell.

RING = "kept results"
"""What the database calls out."""

_LISTEN = 1.0
_AT_MOST_EVERY = 0.02


class AsyncEndBell:
    """Listens while anybody waits; the connection stays open for the next one until the client is
    closed."""

    def __init__(self, database: AsyncDatabase, address: ClientAddress) -> None:
        self._database = database
        self._address = address
        self._ring = asyncio.Event()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, database: AsyncDatabase, address: ClientAddress) -> "AsyncEndBell":
        """The client's one bell."""
        if not isinstance(database.end_bell, cls):
            database.end_bell = cls(database, address)
            database.at_close.add(database.end_bell.close)
        return database.end_bell

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
        self._database.at_close.discard(self.close)
        self._database.end_bell = None
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
            channel = await self._database.run(self._database.engine.claims.notify_channel())
        except LanewayError as error:
            _log.info("waiting for messages by polling: %s", error)
            return LocalNotifier()
        url, pooler = self._address.url, self._address.pooler
        return open_notifier(url, channel=channel, wanted=frozenset([RING]), pooler=pooler)

    async def _ask_to_be_told(self) -> None:
        worker = f"{RING} of {self._database.options.worker}"
        try:
            await self._database.run(
                self._database.engine.claims.sleep((RING,), worker, _ASLEEP_FOR)
            )
        except LanewayError as error:
            _log.debug("could not ask to be told of results: %s", error)
