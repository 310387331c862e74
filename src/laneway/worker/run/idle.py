"""How the claim loop waits: for the notifier, for the next due time, and never longer than a poll.

A notification costs the publisher, so a worker asks for them only while it is idle: it registers as
asleep, claims once more for what came in between, and waits. It stays registered through a trickle
of messages and unregisters once it is really busy. Registering is a small write, at most one a
second; the claims of an idle worker write nothing.
"""

import logging
from datetime import timedelta

from laneway.client.aio.database import AsyncDatabase
from laneway.drivers.listener import Notifier
from laneway.errors import LanewayError
from laneway.model import ClaimStatus
from laneway.worker.clock import Backoff, now
from laneway.worker.execute.unhandled import KindFilter

_log = logging.getLogger("laneway.worker")

BUSY_CLAIMS = 3
"""After so many claims with messages in a row the worker is busy."""

# Seconds.
_FIRST_POLL = 0.02
_LONGEST_POLL = 1.0
_FIRST_RETRY = 0.002
_LONGEST_RETRY = 0.05
_REGISTERED_FOR = 60.0
_RENEW_AFTER = 45.0
_REGISTER_EVERY = 1.0


class ClaimWait:
    """The waiting of one claim loop."""

    def __init__(
        self,
        database: AsyncDatabase,
        notifier: Notifier,
        queues: tuple[str, ...],
        worker: str,
        kinds: KindFilter,
    ) -> None:
        self._database = database
        self._notifier = notifier
        self._queues = queues
        self._worker = worker
        self._kinds = kinds
        self._poll = Backoff(_FIRST_POLL, _LONGEST_POLL)
        self._retry = Backoff(_FIRST_RETRY, _LONGEST_RETRY)
        self._registered_at: float | None = None
        self._registered_kinds: tuple[str, ...] | None = None
        self._asked_at = -_REGISTER_EVERY
        self._notified = 0
        self.registered = False
        """Whether publishers send notifications to this worker."""

    async def wait(
        self, status: ClaimStatus, look_again: timedelta | None, after_messages: bool
    ) -> None:
        """Waits until there may be something to claim; ``after_messages``: the claim before the
        last one had brought some."""
        if after_messages:
            self._poll.reset()
            self._retry.reset()
            self._notified = 0
        if status is ClaimStatus.BUSY:
            await self._notifier.wait(self._retry.next())
            return
        if self._should_register():
            await self._register(_REGISTERED_FOR)
            return  # and claim once more
        seconds = self._poll.next()
        if look_again is not None:
            due = look_again.total_seconds()
            # A due time that has passed without a message must not make the loop spin.
            seconds = min(seconds, due if due > _FIRST_RETRY else self._retry.next())
        if await self._notifier.wait(seconds):
            await self._after_notification()

    async def _after_notification(self) -> None:
        """The first is followed by a claim at once; many in vain do not set the pace of claims."""
        if self._notified:
            await self._retry.sleep()
        self._notified += 1

    async def unregister(self) -> None:
        """The worker is busy or stops: publishers need not notify it."""
        if self.registered:
            await self._register(None)

    def clock_moved(self) -> None:
        """By a test: it may have run past what is due, and past the registration."""
        self._registered_at = None
        self._notifier.wake()

    def _should_register(self) -> bool:
        moment = now()
        if moment < self._asked_at + _REGISTER_EVERY:
            return False
        if self._registered_at is None or self._registered_kinds != self._kinds.claimed:
            return True
        return moment > self._registered_at + _RENEW_AFTER

    async def _register(self, seconds: float | None) -> None:
        length = None if seconds is None else timedelta(seconds=seconds)
        self._asked_at, kinds = now(), self._kinds.claimed
        try:
            plan = self._database.engine.claims.sleep(self._queues, self._worker, length, kinds)
            await self._database.run(plan)
        except LanewayError as error:
            _log.debug("cannot register as %s: %s", "idle" if seconds else "busy", error)
        else:
            self._registered_at = None if seconds is None else self._asked_at
            self._registered_kinds = kinds
            self.registered = seconds is not None
