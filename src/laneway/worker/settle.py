"""The settler writes outcomes to the database: in batches, one queue for each verb.

A batch goes when no more outcomes come in at this moment, or when it is full; there is no timer.
While one is under way the next one gathers. An outcome is written until the database has it or
refuses it for good; each is fenced and has its own result. A message whose handler may still hold
the lock of its lease is written by itself: whatever shared a statement with it would wait for that
handler.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from laneway.client.aio.database import AsyncDatabase
from laneway.client.shared.settle_items import (
    deferrals,
    extensions,
    failed_as,
    failures,
    kept_notes,
    limit_notes,
    returns,
)
from laneway.contract import BATCH, Engine
from laneway.errors import (
    ConnectionUnavailable,
    DatabaseFailed,
    InvalidPayload,
    LanewayError,
    PayloadTooLarge,
)
from laneway.event import StoredResult
from laneway.limits import AttemptEnd
from laneway.model import KeptResult, Settled
from laneway.payload import kept_result
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan
from laneway.shared_limits import LimitNote

from .clock import Backoff, now
from .heartbeat.heartbeat import Heartbeat
from .job import Job, UnstorableResult, after_error
from .outcomes import (
    Cancel,
    Complete,
    Defer,
    Fail,
    GiveBack,
    Outcome,
    Throttled,
    TracebackRule,
    kept_traceback,
)

# Which refusals are final: caused by what was to be written, not by the state of the database.
# Data, integrity, and statements that are wrong or not allowed.
_SQLSTATES = ("22", "23", "42")
# PostgreSQL says so of a row whose partition was attached meanwhile: the next try writes it there.
_MOVED_PARTITION = "23514"
_MYSQL_DATA = {1153, 1264, 1265, 1292, 1366, 1406, 1690, 3140}
_MYSQL_INTEGRITY = {1048, 1062, 1364, 1451, 1452, 3819, 4025}
_MYSQL_STATEMENT = {1044, 1054, 1064, 1142, 1143, 1227, 1305, 1370}
_MYSQL = _MYSQL_DATA | _MYSQL_INTEGRITY | _MYSQL_STATEMENT
_SQLITE = ("SQLITE_CONSTRAINT", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_RANGE", "SQLITE_TOOBIG")


def is_final(error: LanewayError) -> bool:
    """Everything else may pass: locks and deadlocks, a full disk, a server that is read-only for a
    while."""
    if isinstance(error, ConnectionUnavailable):
        return False
    if not isinstance(error, DatabaseFailed) or error.sqlstate is None:  # it was not even sent
        return True
    code = error.sqlstate
    if len(code) == 5:
        return code.startswith(_SQLSTATES) and code != _MOVED_PARTITION
    return int(code) in _MYSQL if code.isdecimal() else code.startswith(_SQLITE)


_log = logging.getLogger("laneway.worker")

_FULL = 1000
_LOCKED_WRITERS = 2  # connections that may wait for locks
# Seconds: between two tries at most; for how long a database may take extensions and yet refuse the
# outcomes, before these are held to be at fault; and for how long a try may wait for a lock.
_LONGEST_WAIT = 5.0
_REFUSAL_TIMEOUT = 30.0
_LOCK_TIMEOUT = 1.0

Verb = Literal["complete", "end_cancelled", "defer", "fail", "give_back"]
T = TypeVar("T")


class Entry(NamedTuple):
    """What an engine writes for an outcome."""

    job: Job
    verb: Verb
    item: Any
    result: KeptResult | None = None
    ended: AttemptEnd | None = None
    """For the shared limits that the message names."""


def entry_for(
    job: Job, outcome: Outcome, max_state: int, tracebacks: TracebackRule
) -> Entry | None:
    """None if there is nothing to write; raises if the outcome cannot be written."""
    if isinstance(outcome, Complete):
        kept = _kept(outcome, max_state)
        return Entry(job, "complete", job._row, kept, AttemptEnd.COMPLETED)
    if isinstance(outcome, Cancel):
        keep = job.keep_result
        return Entry(job, "end_cancelled", job._row, None if keep is None else KeptResult(keep))
    if isinstance(outcome, Defer):
        parts = (outcome.delay, outcome.at, outcome.state, outcome.reason, outcome.error)
        last = job.failures + 1 >= job.max_attempts  # so it may become a dead letter
        trace = kept_traceback(tracebacks, outcome.error) if last else None
        progress = outcome.reason is None and outcome.error is None
        ended = AttemptEnd.COMPLETED if progress else failed_as(outcome.error)
        return Entry(job, "defer", deferrals([job], *parts, max_state, trace)[0], None, ended)
    if isinstance(outcome, Fail):
        trace = kept_traceback(tracebacks, outcome.error)
        item = failures([job], outcome.reason, outcome.error, trace)[0]
        return Entry(job, "fail", item, None, failed_as(outcome.error))
    if isinstance(outcome, Throttled):  # its channel could not be paused
        return Entry(job, "give_back", returns([job], outcome.retry_after)[0])
    if isinstance(outcome, GiveBack):
        return Entry(job, "give_back", returns([job], outcome.delay)[0])
    return None


def _kept(outcome: Complete, most: int) -> KeptResult | None:
    if outcome.keep is None:
        return None
    if isinstance(outcome.result, StoredResult):  # from a handler's process
        return KeptResult(outcome.keep, *outcome.result)
    try:
        return kept_result(outcome.keep, outcome.result, most)
    except InvalidPayload as error:
        raise UnstorableResult(error) from error


def settle_plan(engine: Engine, verb: Verb, entries: list[Entry]) -> Plan[list[Settled]]:
    items = [entry.item for entry in entries]
    if verb == "complete" or verb == "end_cancelled":
        end = engine.leases.complete if verb == "complete" else engine.leases.end_cancelled
        waited = {e.job.id: e.job._waited for e in entries if e.job._waited is not None}
        kept = {(e.job.id, e.job.fence): e.result for e in entries if e.result is not None}
        return end(items, waited, kept)
    plan: Plan[list[Settled]] = getattr(engine.leases, verb)(items)
    return plan


def entry_notes(engine: Engine, entries: list[Entry]) -> list[LimitNote]:
    """What shared limits want to know; most messages name none."""
    return [
        note
        for entry in entries
        if entry.ended is not None and entry.job._row[Column.HEADERS]
        for note in limit_notes(engine, [entry.job], entry.ended)
    ]


def settle_in_transaction(engine: Engine, entry: Entry) -> Plan[list[Settled]]:
    """In a handler's transaction, which may roll back."""
    results = yield from settle_plan(engine, entry.verb, [entry])
    if notes := kept_notes(entry_notes(engine, [entry]), results):
        yield from engine.limits.note_limits(notes)
    return results


class Settler:
    """Until an outcome is sent the heartbeat extends the lease, even if the handler timed out."""

    def __init__(
        self, database: AsyncDatabase, heartbeat: Heartbeat, tracebacks: TracebackRule
    ) -> None:
        self._database = database
        self._tracebacks = tracebacks
        self._max_state = database.options.max_payload
        self._heartbeat = heartbeat
        self.done: Callable[[Job, Settled | None], None] = _ignore
        """Called with each job that needs no more writing, and with the database's result."""
        self._queues: dict[Verb, _VerbQueue] = {verb: _VerbQueue() for verb in get_args(Verb)}
        self._maybe_locked: asyncio.Queue[Entry] = asyncio.Queue()
        self._empty = asyncio.Event()
        self._empty.set()
        self.unsettled = 0
        """How many outcomes the database has not confirmed yet."""

    def put(self, job: Job, outcome: Outcome) -> None:
        """Takes an outcome; raises if it cannot be written."""
        entry = entry_for(job, outcome, self._max_state, self._tracebacks)
        if entry is None:
            self.done(job, None)
            return
        self.unsettled += 1
        self._empty.clear()
        if job.handler is not None and job.handler.timeout is not None:
            self._heartbeat.bound(job, float("inf"))
        if job.maybe_locked:
            self._maybe_locked.put_nowait(entry)
        else:
            self._queues[entry.verb].put(entry)

    async def work(self) -> None:
        """Runs until it is cancelled."""
        queues = [self._write_queue(verb, queue) for verb, queue in self._queues.items()]
        locked = [self._write_maybe_locked() for _ in range(_LOCKED_WRITERS)]
        tasks = [asyncio.create_task(work) for work in (*queues, *locked)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def empty(self) -> None:
        """Waits until everything is settled."""
        await self._empty.wait()

    async def _write_queue(self, verb: Verb, queue: "_VerbQueue") -> None:
        while True:
            await self._write(verb, await queue.batch())

    async def _write_maybe_locked(self) -> None:
        """One at a time, and between two tries the connection is free for others."""
        while True:
            entry = await self._maybe_locked.get()
            await self._write(entry.verb, [entry], _LOCK_TIMEOUT)

    async def _write(self, verb: Verb, entries: list[Entry], seconds: float | None = None) -> None:
        """Returns when each is written, lost or refused for good; ``seconds`` bound one try. The
        heartbeat lets go of them first: nobody else may write to their leases meanwhile."""
        for entry in entries:
            self._heartbeat.release(entry.job)
        backoff: Backoff | None = None
        begun = now()
        unsure = takes_writes = False
        ahead = 0.0
        while True:
            try:
                if late := _late(entries, ahead):
                    entries = await self._still_ours(entries, late, seconds)
                    takes_writes = True
                if not entries:
                    return
                if notes := entry_notes(self._database.engine, entries):
                    await self._run(self._database.engine.limits.note_limits(notes), seconds)
                results = await self._run(
                    settle_plan(self._database.engine, verb, entries), seconds
                )
            except LanewayError as error:
                away = isinstance(error, ConnectionUnavailable)
                hopeless = takes_writes and not away and now() - begun > _REFUSAL_TIMEOUT
                if hopeless or is_final(error):
                    await self._write_singly(verb, entries, error)
                    return
                _log.warning(
                    "%d outcomes are not written yet, trying again: %s", len(entries), error
                )
                unsure = unsure or away
                ahead = _LONGEST_WAIT
                backoff = backoff or Backoff(0.05, _LONGEST_WAIT)
                await backoff.sleep()
            else:
                for entry, result in zip(entries, results, strict=True):
                    # The first try, or the handler's transaction, may have settled it.
                    expected = unsure or entry.job.in_transaction
                    self._end(entry.job, None if result.status == "lost" and expected else result)
                return

    async def _run(self, plan: Plan[T], seconds: float | None) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await self._database.run(plan)
        except TimeoutError:
            raise ConnectionUnavailable(
                f"no answer within {seconds} s: a transaction of the handler may hold the lock"
            ) from None

    async def _still_ours(
        self, entries: list[Entry], late: list[Entry], seconds: float | None
    ) -> list[Entry]:
        """Extends the late ones first; only what is still ours is written."""
        moment = now()
        items = extensions([entry.job for entry in late], self._database.options.lease)
        results = await self._run(self._database.engine.leases.extend(items), seconds)
        lost = set()
        for entry, result in zip(late, results, strict=True):
            if result.lost:
                lost.add(id(entry.job))
                self._end(entry.job, None if entry.job.in_transaction else result)
            else:
                entry.job.deadline = moment + self._database.options.lease.total_seconds()
        return [entry for entry in entries if id(entry.job) not in lost]

    async def _write_singly(self, verb: Verb, entries: list[Entry], error: LanewayError) -> None:
        """One of them may be at fault, and must not hold up the others."""
        if len(entries) > 1:
            for entry in entries:
                await self._write(verb, [entry])
            return
        (entry,) = entries
        if (instead := self._as_error(entry, error)) is not None:
            await self._write(instead.verb, [instead])
            return
        _log.error(
            "the database refused to %s the message, which comes back when its lease expires: %s",
            verb.replace("_", " "),
            error,
            extra=entry.job.log_fields(),
        )
        self._end(entry.job, None)

    def _as_error(self, entry: Entry, error: LanewayError) -> Entry | None:
        """What the database can never store is an error of the handler that gave it."""
        handler = entry.job.handler
        if not isinstance(error, PayloadTooLarge) or handler is None:
            return None
        cause = error if entry.result is None else UnstorableResult(error)
        outcome = after_error(entry.job, handler, cause)
        return entry_for(entry.job, outcome, self._max_state, self._tracebacks)

    def _end(self, job: Job, result: Settled | None) -> None:
        self.unsettled -= 1
        if not self.unsettled:
            self._empty.set()
        self.done(job, result)


def _ignore(job: Job, result: Settled | None) -> None:
    pass


class _VerbQueue:
    """The outcomes of one verb."""

    def __init__(self) -> None:
        self._pending: list[Entry] = []
        self._filled = asyncio.Event()

    def put(self, entry: Entry) -> None:
        self._pending.append(entry)
        self._filled.set()

    async def batch(self) -> list[Entry]:
        """Waits for the next ones to write."""
        await self._filled.wait()
        self._filled.clear()
        await self._gather()
        batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
        if self._pending:
            self._filled.set()
        return batch

    async def _gather(self) -> None:
        """Handlers that are ready to run may end at once: their outcomes go along."""
        seen = 0
        while seen < len(self._pending) < _FULL:
            seen = len(self._pending)
            await asyncio.sleep(0)


def _late(entries: list[Entry], ahead: float) -> list[Entry]:
    """Those whose lease has expired by our own clock (the process was stopped, or the database was
    away), or expires before another try."""
    moment = now() + ahead
    return [entry for entry in entries if entry.job.deadline <= moment]
