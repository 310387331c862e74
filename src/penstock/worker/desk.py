"""Where outcomes are written down, in batches.

A batch goes when no more outcomes come in at this moment, or when it is full; there is no timer.
While one is under way the next one gathers.
"""

import asyncio
from collections.abc import Callable

from penstock.client.async_core import AsyncCore
from penstock.contract import BATCH
from penstock.model import Settled

from .entries import Entry, Verb, entry_for
from .job import Job
from .outcomes import Outcome
from .writing import Writer

_FULL = 1000


class Desk:
    """``release`` and ``done`` as for the writer."""

    def __init__(
        self,
        core: AsyncCore,
        release: Callable[[Job], None],
        done: Callable[[Job, Settled | None], None],
    ) -> None:
        self._most_state = core.options.max_payload
        self._writer = Writer(core, release, self._end)
        self._done = done
        self._pending: list[Entry] = []
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.unsettled = 0
        """How many outcomes the database has not confirmed yet."""

    def put(self, job: Job, outcome: Outcome) -> None:
        """Takes an outcome; raises InvalidInput if it cannot be written."""
        entry = entry_for(job, outcome, self._most_state)
        if entry is None:
            self._done(job, None)
            return
        self._pending.append(entry)
        self.unsettled += 1
        self._idle.clear()
        self._wanted.set()

    async def work(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._gather()
            await self._flush()

    async def empty(self) -> None:
        """Waits until everything is settled."""
        await self._idle.wait()

    async def _gather(self) -> None:
        """Handlers that are ready to run may end at once: their outcomes go along."""
        seen = 0
        while seen < len(self._pending) < _FULL:
            seen = len(self._pending)
            await asyncio.sleep(0)

    async def _flush(self) -> None:
        batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
        if self._pending:
            self._wanted.set()
        by_verb: dict[Verb, list[Entry]] = {}
        for entry in batch:
            by_verb.setdefault(entry.verb, []).append(entry)
        for verb, entries in by_verb.items():
            await self._writer.write(verb, entries)

    def _end(self, job: Job, answer: Settled | None) -> None:
        self.unsettled -= 1
        if not self.unsettled:
            self._idle.set()
        self._done(job, answer)
