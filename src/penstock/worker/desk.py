"""Where outcomes are written down: in batches, one line for each verb.

A batch goes when no more outcomes come in at this moment, or when it is full; there is no timer.
While one is under way the next one gathers. A message whose handler may still hold the lock of its
lease goes by itself: whoever shared a statement with it would wait for that handler.
"""

import asyncio
from collections.abc import Callable
from typing import get_args

from penstock.client.async_core import AsyncCore
from penstock.contract import BATCH
from penstock.model import Settled

from .entries import Entry, Verb, entry_for
from .job import Job
from .outcomes import Outcome
from .pulse import Pulse
from .writing import Writer

_FULL = 1000
_APART = 2  # connections that may wait for locks


class Desk:
    """``done`` is told of jobs that are off the desk, with what the database said. Until their
    outcome is sent the pulse keeps their leases, whatever time their handlers had."""

    def __init__(
        self, core: AsyncCore, pulse: Pulse, done: Callable[[Job, Settled | None], None]
    ) -> None:
        self._most_state = core.options.max_payload
        self._pulse = pulse
        self._done = done
        self._writer = Writer(core, pulse.release, self._end)
        self._lines: dict[Verb, _Line] = {
            verb: _Line(verb, self._writer) for verb in get_args(Verb)
        }
        self._apart: asyncio.Queue[Entry] = asyncio.Queue()
        self._idle = asyncio.Event()
        self._idle.set()
        self.unsettled = 0
        """How many outcomes the database has not confirmed yet."""

    def put(self, job: Job, outcome: Outcome) -> None:
        """Takes an outcome; raises if it cannot be written."""
        entry = entry_for(job, outcome, self._most_state)
        if entry is None:
            self._done(job, None)
            return
        self.unsettled += 1
        self._idle.clear()
        if job.handler is not None and job.handler.timeout is not None:
            self._pulse.bound(job, float("inf"))
        if job.apart:
            self._apart.put_nowait(entry)
        else:
            self._lines[entry.verb].put(entry)

    async def work(self) -> None:
        """Runs until it is cancelled."""
        lines = [line.work() for line in self._lines.values()]
        apart = [self._work_apart() for _ in range(_APART)]
        tasks = [asyncio.create_task(work) for work in (*lines, *apart)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def empty(self) -> None:
        """Waits until everything is settled."""
        await self._idle.wait()

    async def _work_apart(self) -> None:
        while True:
            entry = await self._apart.get()
            await self._writer.write_locked(entry)

    def _end(self, job: Job, answer: Settled | None) -> None:
        self.unsettled -= 1
        if not self.unsettled:
            self._idle.set()
        self._done(job, answer)


class _Line:
    """The outcomes of one verb."""

    def __init__(self, verb: Verb, writer: Writer) -> None:
        self._verb = verb
        self._writer = writer
        self._pending: list[Entry] = []
        self._wanted = asyncio.Event()

    def put(self, entry: Entry) -> None:
        self._pending.append(entry)
        self._wanted.set()

    async def work(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._gather()
            batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
            if self._pending:
                self._wanted.set()
            await self._writer.write(self._verb, batch)

    async def _gather(self) -> None:
        """Handlers that are ready to run may end at once: their outcomes go along."""
        seen = 0
        while seen < len(self._pending) < _FULL:
            seen = len(self._pending)
            await asyncio.sleep(0)
