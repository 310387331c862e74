"""Writing outcomes until the database has them, each fenced and answered for itself."""

import asyncio
import logging
from collections.abc import Callable

from penstock.client.async_core import AsyncCore
from penstock.client.settlement import extensions
from penstock.errors import ConnectionUnavailable, PenstockError
from penstock.model import Settled
from penstock.plan import Plan

from .backoff import Backoff
from .clock import now
from .entries import Entry, Verb, settling_plan
from .job import Job
from .refusals import is_final

_log = logging.getLogger("penstock.worker")

# Seconds: between two tries at most; for how long a database may take extensions and yet refuse the
# outcomes, before these are held to be at fault; and for how long a try may wait for a lock.
_LONGEST_WAIT = 5.0
_PATIENCE = 30.0
_LOCKED = 1.0


class Writer:
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

    async def write_locked(self, entry: Entry) -> None:
        """For one whose handler may hold the lock of its lease: between tries that wait for it the
        connection is free for others."""
        await self.write(entry.verb, [entry], _LOCKED)

    async def write(self, verb: Verb, entries: list[Entry], most: float | None = None) -> None:
        """Returns when each is written, lost or refused for good; ``most`` seconds bound a try."""
        for entry in entries:
            self._release(entry.job)
        backoff = Backoff(0.05, _LONGEST_WAIT)
        begun = now()
        unsure = takes_writes = False
        ahead = 0.0
        while True:
            try:
                if late := _late(entries, ahead):
                    entries = await self._still_ours(entries, late, most)
                    takes_writes = True
                if not entries:
                    return
                answers = await self._run(settling_plan(self._core.engine, verb, entries), most)
            except PenstockError as error:
                away = isinstance(error, ConnectionUnavailable)
                hopeless = takes_writes and not away and now() - begun > _PATIENCE
                if hopeless or is_final(error):
                    await self._write_apart(verb, entries, error)
                    return
                _log.warning("%d outcomes wait for the database: %s", len(entries), error)
                unsure = unsure or away
                ahead = _LONGEST_WAIT
                await backoff.sleep()
            else:
                for entry, answer in zip(entries, answers, strict=True):
                    # The first try, or the handler's transaction, may have settled it.
                    settled = answer.lost and (unsure or entry.job.in_transaction)
                    self._done(entry.job, None if settled else answer)
                return

    async def _run(self, plan: Plan[list[Settled]], most: float | None) -> list[Settled]:
        try:
            async with asyncio.timeout(most):
                return await self._core.run(plan)
        except TimeoutError:
            raise ConnectionUnavailable(
                f"no answer within {most} s: a transaction of the handler may hold the lock"
            ) from None

    async def _still_ours(
        self, entries: list[Entry], late: list[Entry], most: float | None
    ) -> list[Entry]:
        """What is late is asked for first; only what is still ours is written."""
        moment = now()
        items = extensions([entry.job for entry in late], self._core.options.lease)
        answers = await self._run(self._core.engine.extend(items), most)
        gone = set()
        for entry, answer in zip(late, answers, strict=True):
            if answer.lost:
                gone.add(id(entry.job))
                self._done(entry.job, None if entry.job.in_transaction else answer)
            else:
                entry.job.deadline = moment + self._core.options.lease.total_seconds()
        return [entry for entry in entries if id(entry.job) not in gone]

    async def _write_apart(self, verb: Verb, entries: list[Entry], error: PenstockError) -> None:
        """One of them may be at fault, and must not hold up the others."""
        if len(entries) > 1:
            for entry in entries:
                await self.write(verb, [entry])
            return
        (entry,) = entries
        _log.error(
            "%s was refused, the message comes back when its lease runs out: %s",
            verb,
            error,
            extra=entry.job.log_fields(),
        )
        self._done(entry.job, None)


def _late(entries: list[Entry], ahead: float) -> list[Entry]:
    """Whose lease has ended by our own clock (we were stopped, or the database was away), or ends
    before we could try again."""
    moment = now() + ahead
    return [entry for entry in entries if entry.job.deadline <= moment]
