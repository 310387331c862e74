"""Tells the hooks for dead letters of every one of the worker's queues, wherever it was made: by
this worker, another one that was killed, a consumer, upkeep.

The dead letter itself says whether somebody was told of it. A worker takes one for itself, calls
the hooks, and notes that it has: so one worker of all tells of a letter, and if that worker dies in
between, another does it again.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from laneway.client.aio.database import AsyncDatabase
from laneway.errors import LanewayError
from laneway.inspection import DeadLetterPosition
from laneway.model import ClaimStatus, DeadLetter, Settled
from laneway.worker.definition import Hooks
from laneway.worker.job import Job
from laneway.worker.telemetry.observer import OutcomeName

_log = logging.getLogger("laneway.worker")

HOLD = timedelta(minutes=1)
"""How long a hook has; then another worker tells of the letter."""
_LOOK_EVERY = 10.0  # seconds


class DeadLetterNotices:
    """An observer too: what dies here is told at once."""

    def __init__(self, database: AsyncDatabase, queues: Sequence[str], hooks: Hooks) -> None:
        self._database = database
        self._queues = tuple(queues)
        self._hooks = hooks
        self._died = asyncio.Event()
        self._closing = False

    def look_now(self) -> None:
        self._died.set()

    def close(self) -> None:
        """Has ``work`` end, after a last look."""
        self._closing = True
        self._died.set()

    async def work(self) -> None:
        """Runs until ``close`` is called."""
        needed = self._hooks.has("dead")
        while True:
            last = self._closing
            if needed:
                await self._tell_all()
            if last:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY if needed else None):
                    await self._died.wait()
            self._died.clear()

    async def _tell_all(self) -> None:
        """Of those that nobody was told of."""
        while True:
            try:
                plan = self._database.engine.dead_letters.untold_dead_letters(self._queues, 1, HOLD)
                letters = await self._database.run(plan)
                for letter in letters:
                    await self._tell(letter)
            except LanewayError as error:
                _log.warning("cannot tell of dead letters, trying again: %s", error)
                return
            if not letters:
                return

    async def _tell(self, letter: DeadLetter) -> None:
        try:
            async with asyncio.timeout(HOLD.total_seconds()):
                await self._hooks.call("dead", letter)
        except asyncio.CancelledError:
            raise
        except BaseException:  # sys.exit() too
            _log.exception(
                "a hook for dead letters failed, and is called again for message %d", letter.id
            )
            return
        told = [DeadLetterPosition(letter.died_at, letter.id)]
        await self._database.run(self._database.engine.dead_letters.dead_letters_told(told))

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None: ...

    def lost(self, job: Job) -> None: ...

    def settled(self, job: Job, result: Settled | None) -> None:
        answer = result or job.own_result
        if answer is not None and answer.status in ("failed", "dead"):
            self.look_now()
