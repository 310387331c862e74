"""Where outcomes are written down: in batches, each fenced and answered for itself.

A batch goes when no more outcomes come in at this moment, or when it is full; there is no timer.
While one is under way the next one gathers. What the database does not take is tried again.
"""

import asyncio
import logging
from collections.abc import Callable

from penstock.client.async_core import AsyncCore
from penstock.client.settlement import extensions
from penstock.contract import BATCH
from penstock.errors import ConnectionUnavailable, DatabaseFailed, PenstockError
from penstock.model import Settled

from .backoff import Backoff
from .clock import now
from .entries import Entry, Verb, entry_for, settling_plan
from .job import Job
from .outcomes import Outcome

_log = logging.getLogger("penstock.worker")

_FULL = 1000
# Deadlocks and serialization, resources, objects in use, operators, the system: it may pass.
_TRANSIENT = ("40", "53", "55", "57", "58")


class Desk:
    """``release`` is told of jobs whose outcome goes to the database now: nobody else may write to
    their leases meanwhile. ``done`` is told of those that are off the desk, with what the database
    said."""

    def __init__(
        self,
        core: AsyncCore,
        release: Callable[[Job], None],
        done: Callable[[Job, Settled | None], None],
    ) -> None:
        self._core = core
        self._release = release
        self._done = done
        self._pending: list[Entry] = []
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.unsettled = 0
        """How many outcomes the database has not confirmed yet."""

    def put(self, job: Job, outcome: Outcome) -> None:
        """Takes an outcome; raises InvalidInput if it cannot be written."""
        entry = entry_for(job, outcome, self._core.options.max_payload)
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
            if not self.unsettled:
                self._idle.set()

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
            self._release(entry.job)
            by_verb.setdefault(entry.verb, []).append(entry)
        for verb, entries in by_verb.items():
            await self._settle(verb, entries)

    async def _settle(self, verb: Verb, entries: list[Entry]) -> None:
        backoff = Backoff(0.05, 5.0)
        unsure = False
        while True:
            try:
                entries = await self._still_ours(entries)
                if not entries:
                    return
                plan = settling_plan(self._core.engine, verb, entries)
                answers = await self._core.run(plan)
            except PenstockError as error:
                if not _may_pass(error):
                    await self._settle_apart(verb, entries, error)
                    return
                _log.warning("%d outcomes wait for the database: %s", len(entries), error)
                unsure = True
                await backoff.sleep()
            else:
                for entry, answer in zip(entries, answers, strict=True):
                    # The first try may have been written before its answer was lost.
                    self._end(entry, None if unsure and answer.lost else answer)
                return

    async def _still_ours(self, entries: list[Entry]) -> list[Entry]:
        """A lease that ended by our own clock (we were stopped, or the database was away) is asked
        for first; only what is still ours is written."""
        moment = now()
        late = [entry for entry in entries if entry.job.deadline <= moment]
        if not late:
            return entries
        items = extensions([entry.job for entry in late], self._core.options.lease)
        answers = await self._core.run(self._core.engine.extend(items))
        gone = set()
        for entry, answer in zip(late, answers, strict=True):
            if answer.lost:
                gone.add(id(entry.job))
                self._end(entry, answer)
            else:
                entry.job.deadline = moment + self._core.options.lease.total_seconds()
        return [entry for entry in entries if id(entry.job) not in gone]

    async def _settle_apart(self, verb: Verb, entries: list[Entry], error: PenstockError) -> None:
        """One of them may be at fault, and must not hold up the others."""
        if len(entries) > 1:
            for entry in entries:
                await self._settle(verb, [entry])
            return
        (entry,) = entries
        _log.error(
            "%s was refused, the message comes back when its lease runs out: %s",
            verb,
            error,
            extra=entry.job.log_fields(),
        )
        self._end(entry, None)

    def _end(self, entry: Entry, answer: Settled | None) -> None:
        self.unsettled -= 1
        self._done(entry.job, answer)


def _may_pass(error: PenstockError) -> bool:
    if isinstance(error, DatabaseFailed):
        return error.sqlstate is not None and error.sqlstate.startswith(_TRANSIENT)
    return isinstance(error, ConnectionUnavailable)
