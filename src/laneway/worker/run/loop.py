"""The loop: one run of a worker, from its first claim to its last write."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import TypeVar

from laneway.client.aio.queue import AsyncQueue
from laneway.client.shared.claim import busy_if_locked
from laneway.clock import on_move
from laneway.contract import BATCH
from laneway.drivers.choice import open_notifier
from laneway.errors import ConnectionUnavailable, DatabaseFailed, LanewayError, SchemaTooOld
from laneway.model import ClaimStatus
from laneway.names import wake_names
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Taken
from laneway.worker.clock import Backoff, now
from laneway.worker.definition import WorkerDefinition
from laneway.worker.execute.pool import MAX_PREFETCH, Slots
from laneway.worker.execute.unhandled import KindFilter
from laneway.worker.job import Job
from laneway.worker.telemetry.health import Health
from laneway.worker.telemetry.observer import Observer
from laneway.worker.telemetry.tally import Tally

from .background import Registration, run_upkeep
from .dead_letters import DeadLetterNotices
from .idle import BUSY_CLAIMS, ClaimWait
from .runtime import Runtime
from .shutdown import (
    CLOSE_TIMEOUT,
    Shutdown,
    StoppedEarly,
    abandon,
    cancel_all,
    cancelled_by,
    finish_within,
)
from .typos import Typos

T = TypeVar("T")

_log = logging.getLogger("laneway.worker")

_MAX_UNSETTLED = 2000
# Seconds that a message waits for its handler here before it is given back for other workers.
_LONGEST_QUEUED = 1.0
# Seconds that a shutdown waits for a claim under way, for handlers that were cancelled, for the
# last writes, and for the hooks that are told of dead letters.
_CLAIM_TIMEOUT = 5.0
_CANCEL_TIMEOUT = 5.0
_WRITE_TIMEOUT = 10.0
_NOTICE_TIMEOUT = 10.0
# Seconds since the last claim after which a worker is not ready.
_LONGEST_SILENCE = 30.0
NO_WRITES = "the server takes no writes: it is a standby, or read-only"


class WorkerLoop:
    """``shutdown`` may be requested at any time."""

    def __init__(
        self,
        client: AsyncQueue,
        definition: WorkerDefinition,
        observers: Sequence[Observer],
        shutdown: Shutdown,
        slots: Slots,
    ) -> None:
        self._slots = slots
        self._client = client
        self._tally = Tally()
        self._database = client.database
        self._notices = DeadLetterNotices(
            self._database, definition.options.queues, definition.hooks
        )
        self._observers = observers = (*observers, self._tally, self._notices)
        self._worker = client.worker
        self._definition = definition
        self._options = definition.options
        self._handlers = definition.handlers
        self._typos = Typos(self._database)
        self._kinds = KindFilter(definition.handlers, self._database)
        self._shutdown = shutdown
        self._room = asyncio.Event()
        self._blocked = False
        self._full = False
        self._stop_at_limit: asyncio.Task[None] | None = None
        self._claims_in_a_row = 0  # that brought messages
        self._claiming = asyncio.Lock()
        self._event_loop = asyncio.get_running_loop()
        self.prepared = False
        """Whether it has begun to claim."""
        self.answered_at: float | None = None
        """When a claim was last answered, by our own clock."""
        max_jobs = definition.options.concurrency + _MAX_UNSETTLED + 2 * MAX_PREFETCH
        self._runtime = Runtime(
            client,
            definition,
            max_jobs,
            observers,
            self._room.set,
            self._note_freed,
            slots,
            self._kinds,
        )
        self._pool, self._settler = self._runtime.pool, self._runtime.settler

    async def work(self) -> None:
        """Until it is stopped; everything claimed is settled or given back by then."""
        self._runtime.heartbeat.start()
        try:
            async with cancelled_by(self._shutdown.requested):
                channel = await self._prepare()
            try:
                await self._work_with(channel)
            finally:
                _log.info("worker %s stopped: %s", self._worker, self._tally)
        except StoppedEarly:
            _log.info("stopped before the database answered")
        finally:
            await self._runtime.close()

    async def _prepare(self) -> str | None:
        """The channel that the notifier listens to, once there is a schema of a known version."""
        version = await self._run_patiently(self._database.engine.schema.schema_version)
        if problem := self._schema_problem(version):
            raise SchemaTooOld(problem)
        channel = await self._run_patiently(self._database.engine.claims.notify_channel)
        await self._kinds.look_around(self._options.queues)
        await self._typos.look_at_queues(self._options.queues, self._definition.queues_of_tasks)
        await self._runtime.heartbeat.until_ready()
        self._log_start()
        return channel

    def _log_start(self) -> None:
        _log.info(
            "worker %s started: queues %s; kinds %s; concurrency %d; database %s",
            self._worker,
            ", ".join(self._options.queues),
            ", ".join(self._handlers.kinds()) or "all",
            self._options.concurrency,
            self._client._address.shown,
        )

    async def problems(self) -> list[str]:
        """What keeps the worker from working now; whoever asks bounds the time."""
        if self._shutdown.requested.is_set():
            return ["the worker is stopping"]
        problems = []
        try:
            version = await self._database.run(self._database.engine.schema.schema_version())
            if problem := self._schema_problem(version):
                problems.append(problem)
            if not await self._database.run(self._database.engine.schema.takes_writes()):
                problems.append(NO_WRITES)
        except LanewayError as error:
            problems.append(f"the database does not answer: {error}")
        if self.answered_at is None:
            problems.append("no claim has been answered yet")
        elif not self._full and now() - self.answered_at > _LONGEST_SILENCE:
            problems.append(f"no claim was answered for {now() - self.answered_at:.0f} s")
        return problems

    def _schema_problem(self, version: int) -> str | None:
        newest = self._database.engine.schema.newest_version
        if version >= newest:
            return None
        return f"the schema has version {version}, this Laneway needs {newest}: upgrade it"

    async def _work_with(self, channel: str | None) -> None:
        address, queues = self._client._address, self._options.queues
        wanted = wake_names(queues, None) | wake_names(queues, self._kinds.handled)
        self._notifier = open_notifier(
            address.url, channel=channel, wanted=wanted, pooler=address.pooler
        )
        self._idle = ClaimWait(self._database, self._notifier, queues, self._worker, self._kinds)
        self._slots.wake = self._wake
        self.prepared = True
        registration = Registration(
            self._database,
            self._definition,
            lambda: self._pool.running,
            self._shutdown.requested,
            self._pool.cancel,
        )
        seen = asyncio.create_task(registration.work())
        helpers = [asyncio.create_task(self._give_back_waiting())]
        if self._options.when_empty is None:
            helpers.append(asyncio.create_task(run_upkeep(self._client, self._upkeep)))
        telling = asyncio.create_task(self._notices.work())
        on_move.add(self._clock_moved)
        writing = asyncio.create_task(self._settler.work())
        claims = asyncio.create_task(self._claim_until_stopped())
        try:
            await self._until_stopped([claims, writing, seen, telling, *helpers])
            await self._finish(claims)
            if not self._shutdown.immediate.is_set():
                self._notices.close()
                await asyncio.wait([telling], timeout=_NOTICE_TIMEOUT)
        except asyncio.CancelledError:
            # A cancelled worker does not wait for handlers, but gives their messages back.
            self._shutdown.stop_now()
            await self._finish(claims)
            raise
        except Exception:
            # A task failed: handlers end as after a stop, and their outcomes are written.
            if writing.done():
                writing = asyncio.create_task(self._settler.work())
            self._shutdown.stop()
            await self._finish(claims)
            raise
        finally:
            await cancel_all([claims, writing, telling, *helpers], CLOSE_TIMEOUT)
            on_move.discard(self._clock_moved)
            await finish_within(registration.close(seen), CLOSE_TIMEOUT)
            seen.cancel()
            if self._stop_at_limit is not None:
                self._stop_at_limit.cancel()
            await finish_within(self._idle.unregister(), CLOSE_TIMEOUT)
            await finish_within(self._notifier.close(), CLOSE_TIMEOUT)

    async def _until_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """None of the tasks ends by itself: one that does has failed, and ends the run."""
        requested = asyncio.create_task(self._shutdown.requested.wait())
        limit = self._options.max_runtime
        seconds = None if limit is None else limit.total_seconds()
        try:
            await asyncio.wait([requested, *tasks], timeout=seconds, return_when="FIRST_COMPLETED")
        finally:
            requested.cancel()
        for task in tasks:
            if task.done():
                task.result()
        self._shutdown.whole.stop()

    async def _finish(self, claims: asyncio.Task[None]) -> None:
        """Waits for a claim under way too, so that its messages are given back."""
        immediate = asyncio.create_task(self._shutdown.immediate.wait())
        self._wake()
        try:
            await asyncio.wait([claims], timeout=_CLAIM_TIMEOUT)
            self._pool.give_back_queued()
            idle = asyncio.create_task(self._pool.idle())
            grace = self._options.grace.total_seconds()
            await asyncio.wait([idle, immediate], timeout=grace, return_when="FIRST_COMPLETED")
            self._pool.interrupt_all("shutdown")
            await asyncio.wait([idle], timeout=_CANCEL_TIMEOUT)
            idle.cancel()
            for task in self._pool.abandon_all():
                abandon(task)
        finally:
            immediate.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_WRITE_TIMEOUT):
                await self._settler.empty()
        if self._settler.unsettled:
            _log.error("%d outcomes could not be written", self._settler.unsettled)

    # The claim loop.

    async def _claim_until_stopped(self) -> None:
        backoff: Backoff | None = None  # while claims fail
        while not self._shutdown.requested.is_set():
            want = self._want()
            if want < 1:
                self._full = True
                self._room.clear()
                await self._room.wait()
                self._full = False
                continue
            try:
                await self._claim(want)
            except LanewayError as error:
                self._slots.answered(0, error)
                _log.warning("the claim failed, trying again: %s", error)
                backoff = backoff or Backoff(0.1, 5.0)
                await self._notifier.wait(backoff.next())
            else:
                backoff = None

    def _want(self) -> int:
        if self._settler.unsettled >= _MAX_UNSETTLED:
            return 0
        want = min(self._pool.room(), BATCH)
        if self._options.max_messages is None:
            return want
        left = self._options.max_messages - self._slots.claimed
        if left <= 0 and self._stop_at_limit is None:
            self._stop_at_limit = asyncio.create_task(self._stop_when_idle())
        return min(want, left - self._slots.asked_elsewhere())

    async def _stop_when_idle(self) -> None:
        await self._slots.idle()
        if self._slots.claimed < (self._options.max_messages or 0):  # some were given back
            self._stop_at_limit = None
            self._room.set()
        else:
            self._shutdown.whole.stop()

    async def _give_back_waiting(self) -> None:
        while True:
            await asyncio.sleep(_LONGEST_QUEUED / 2)
            self._slots.claimed -= self._pool.give_back_if_waiting(_LONGEST_QUEUED)

    async def _claim(self, want: int) -> None:
        options = self._options
        asked, was_idle = now(), self._is_idle()
        turn = self._slots.asking()
        plan = self._database.engine.claims.claim(
            options.queues, want, options.lease, self._worker, self._kinds.claimed
        )
        try:
            async with self._claiming:
                taken = await self._database.run(plan)
        except DatabaseFailed as error:
            taken = busy_if_locked(error)
        self.answered_at = now()
        for observer in self._observers:
            observer.claimed(len(taken.rows), taken.status, self.answered_at - asked)
        self._blocked = taken.status is ClaimStatus.BLOCKED
        jobs = self._jobs(taken, asked + options.lease.total_seconds())
        self._take_in(jobs)
        await self._typos.look_at_limits(jobs)
        self._slots.answered(len(jobs))
        if self._shutdown.requested.is_set():
            return
        if jobs:
            full = len(jobs) >= want
            if self._idle.registered and (full or self._claims_in_a_row >= BUSY_CLAIMS):
                await self._idle.unregister()
            elif not full:
                await asyncio.sleep(0)  # the handlers start before the next claim is made
        elif self._is_all(options.until_empty and was_idle, taken.status, turn):
            if not await self._goes_on(taken.look_again):
                self._shutdown.whole.stop()
        else:
            after_messages, self._claims_in_a_row = self._claims_in_a_row > 0, 0
            await self._idle.wait(taken.status, taken.look_again, after_messages)

    def _is_all(self, ends: bool, status: ClaimStatus, turn: int) -> bool:
        return ends and status is not ClaimStatus.BUSY and self._slots.emptied(turn)

    async def _goes_on(self, look_again: timedelta | None) -> bool:
        when_empty = self._options.when_empty
        return when_empty is not None and await when_empty(self._client, look_again)

    def _take_in(self, jobs: list[Job]) -> None:
        """Gives back what came too late: after a stop, or more than ``max_messages`` because
        another database answered late."""
        if not jobs:
            return
        most = self._options.max_messages
        left = len(jobs) if most is None else max(0, most - self._slots.claimed)
        if self._shutdown.requested.is_set():
            left = 0
        if late := jobs[left:]:
            self._pool.give_back(late)
        if left:
            self._slots.claimed += len(jobs[:left])
            self._claims_in_a_row += 1
            self._pool.add(jobs[:left])

    def _jobs(self, taken: Taken, deadline: float) -> list[Job]:
        """Of the messages claimed; their leases end at ``deadline`` at the earliest, by our own
        clock."""
        claimed_at, until = taken.claimed_at, taken.until
        if claimed_at is None or until is None:
            return []
        find, default = self._handlers.by_kind.get, self._handlers.default
        return [
            Job(row, claimed_at, until, deadline, find(row[Column.KIND], default))
            for row in taken.rows
        ]

    async def _upkeep(self) -> None:
        """Under the clock of a test leases run out by leaps: not while this worker has any."""
        async with self._claiming if self._definition.of_a_test else nullcontext():
            if self._definition.of_a_test and not self._is_idle():
                return
            report = await self._client.upkeep()
        if report.buried:
            self._notices.look_now()

    def _is_idle(self) -> bool:
        return not self._pool.running and not self._settler.unsettled

    def _note_freed(self) -> None:
        self._room.set()
        if self._blocked or self._options.until_empty:
            self._notifier.wake()

    def _wake(self) -> None:
        self._room.set()
        self._notifier.wake()

    def _clock_moved(self) -> None:
        """By a test, in any thread: whoever waits looks again."""
        self._event_loop.call_soon_threadsafe(self._idle.clock_moved)

    async def _run_patiently(self, plan: Callable[[], Plan[T]]) -> T:
        """Waits for a database that is away at the start; a missing schema is an error."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return await self._database.run(plan())
            except ConnectionUnavailable as error:
                _log.warning("waiting for the database: %s", error)
                await backoff.sleep()


async def serve_one(
    definition: WorkerDefinition,
    observers: Sequence[Observer],
    shutdown: Shutdown,
    health: Health,
) -> None:
    """A worker of one database."""
    client = definition.open_client()
    try:
        slots = Slots(definition.options.concurrency)
        loop = WorkerLoop(client, definition, observers, shutdown, slots)
        health.ready = loop.problems
        await loop.work()
    finally:
        await finish_within(client.close(), CLOSE_TIMEOUT)
