"""How readers rest between two looks, for asyncio: until the notifier wakes them, or for a while.

Ringing costs whoever tells, so a reader asks for it only once it has been idle, and no longer when
it is busy reading. A notification is a hint: the reader looks again after a while in any case.
"""

import logging
import time
from asyncio import sleep as pause
from datetime import timedelta

from laneway.client.shared.options import ClientAddress
from laneway.drivers.choice import open_notifier
from laneway.drivers.listener import LocalNotifier, Notifier
from laneway.errors import DatabaseFailed, LanewayError

from .core import AsyncCore

__all__ = ["AsyncIdleWait", "pause"]

_log = logging.getLogger("laneway")

_ASLEEP_FOR = timedelta(seconds=60)
# Seconds.
_RENEW_EVERY = 45.0
_SLEEPY_AFTER = 0.2
_FIRST = 0.01
_MOST = 1.0
_BUSY_LOOKS = 3


class AsyncIdleWait:
    """The rest of one reader; the notifier gets the name of its mailbox."""

    def __init__(self, core: AsyncCore, address: ClientAddress) -> None:
        self._core = core
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
            self._core.at_close.discard(self.close)
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
            self._core.at_close.add(self.close)
        await self._note(_ASLEEP_FOR)

    async def _open_notifier(self, mailbox: str) -> Notifier:
        try:
            channel = await self._core.run(self._core.engine.notify_channel())
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
            await self._core.run(self._core.engine.sleep((mailbox,), mailbox, length))
        except LanewayError as error:
            _log.debug("a reader of events could not be noted as asleep or awake: %s", error)
