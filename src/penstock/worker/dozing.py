"""How the claim loop waits: for the bell, for the next due time, and never longer than a poll.

Ringing costs the publisher, so a worker asks for it only while it is idle: it registers as asleep,
claims once more for what came in between, and waits. It stays registered through a trickle of
messages and takes itself off the list once it is really busy. Registering is a small write, at most
one a second; the claims of an idle worker write nothing.
"""

import logging
from datetime import timedelta

from penstock.client.async_core import AsyncCore
from penstock.drivers.bell import Bell
from penstock.errors import PenstockError
from penstock.model import Answer

from .backoff import Backoff
from .clock import now

_log = logging.getLogger("penstock.worker")

# Seconds.
_FIRST_POLL = 0.02
_MOST_POLL = 1.0
_FIRST_BUSY = 0.002
_MOST_BUSY = 0.05
_REGISTERED_FOR = 60.0
_RENEW_AFTER = 45.0
_REGISTER_EVERY = 1.0
_BUSY_CLAIMS = 3


class Doze:
    """The waiting of one claim loop."""

    def __init__(self, core: AsyncCore, bell: Bell, queues: tuple[str, ...], worker: str) -> None:
        self._core = core
        self._bell = bell
        self._queues = queues
        self._worker = worker
        self._poll = Backoff(_FIRST_POLL, _MOST_POLL)
        self._crowd = Backoff(_FIRST_BUSY, _MOST_BUSY)
        self._registered_at: float | None = None
        self._asked_at = -_REGISTER_EVERY
        self._found = 0
        self._rings = 0

    async def found(self, full: bool) -> None:
        """The last claim brought messages, and perhaps as many as were asked for."""
        self._poll.reset()
        self._crowd.reset()
        self._rings = 0
        self._found += 1
        if self._registered_at is not None and (full or self._found >= _BUSY_CLAIMS):
            await self._register(None)

    async def wait(self, answer: Answer, look_again: timedelta | None) -> None:
        """Until there may be something to claim."""
        self._found = 0
        if answer is Answer.BUSY:
            await self._bell.wait(self._crowd.next())
            return
        if self._should_register():
            await self._register(_REGISTERED_FOR)
            return  # and look once more
        seconds = self._poll.next()
        if look_again is not None:
            due = look_again.total_seconds()
            # A due time that has come and brought nothing must not make the loop spin.
            seconds = min(seconds, due if due > _FIRST_BUSY else self._crowd.next())
        if await self._bell.wait(seconds):
            await self._answer_ring()

    async def _answer_ring(self) -> None:
        """At once; but a stream of rings for nothing at our own pace, not at theirs."""
        if self._rings:
            await self._crowd.sleep()
        self._rings += 1

    async def close(self) -> None:
        if self._registered_at is not None:
            await self._register(None)

    def _should_register(self) -> bool:
        moment = now()
        if moment < self._asked_at + _REGISTER_EVERY:
            return False
        return self._registered_at is None or moment > self._registered_at + _RENEW_AFTER

    async def _register(self, seconds: float | None) -> None:
        length = None if seconds is None else timedelta(seconds=seconds)
        self._asked_at = now()
        try:
            await self._core.run(self._core.engine.sleep(self._queues, self._worker, length))
        except PenstockError as error:
            _log.debug("could not be noted as %s: %s", "asleep" if seconds else "awake", error)
        else:
            self._registered_at = None if seconds is None else self._asked_at
