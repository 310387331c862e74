"""The pool: as many handlers at a time as the concurrency allows, and a short queue before them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextvars import copy_context
from datetime import timedelta
from typing import Any

from laneway.client.shared.error_text import LOG_CHARACTERS, said
from laneway.errors import LanewayError
from laneway.model import HeldLease, Settled
from laneway.worker.clock import now
from laneway.worker.connection_pools import watch
from laneway.worker.heartbeat.heartbeat import Heartbeat
from laneway.worker.job import Interruption, Job, after_error
from laneway.worker.outcomes import CANCEL, GIVE_BACK, LEAVE, Defer, Outcome
from laneway.worker.settle import Settler
from laneway.worker.telemetry.observer import Observer, outcome_name

from .executor import HandlerExecutor
from .handler_message import LeaseCheck
from .threads import Threads
from .unhandled import Unhandled

_log = logging.getLogger("laneway.worker")

MAX_PREFETCH = 1000
# Seconds: many times a claim's round trip, and a small part of any lease.
_PREFETCH_HORIZON = 0.05
_PREFETCH_WINDOW = 0.02

_LAST_RESORT = Defer(timedelta(minutes=1), error="its outcome could not be written")


class Slots:
    """How many handlers may run at a time, and how many messages were claimed for them. A worker
    of several databases shares them out: see ``run.fleet``."""

    processes: asyncio.Semaphore | None = None
    """Those that databases share; None: the pool has processes of its own."""
    clients: Mapping[Any, Any] = {}
    """Of the worker's databases, by their place; empty if there is one."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.claimed = 0
        """For ``max_messages``."""

    def attach(self, pool: "HandlerPool") -> None:
        self.pool = pool
        self.wake: Callable[[], None] = _nothing
        """Makes its claim loop look again."""

    def room(self, busy: int) -> int:
        """How many more can start at once."""
        return self.total - busy

    def take(self, busy: int) -> bool:
        """Whether one more starts now."""
        return busy < self.total

    def freed(self) -> None:
        """A handler has ended."""

    def asking(self) -> int:
        """A claim for ``room`` begins; answers what ``emptied`` wants to know."""
        return 0

    def answered(self, found: int, error: LanewayError | None = None) -> None:
        """The claim has ended; it found so many messages."""

    def asked_elsewhere(self) -> int:
        """How many messages claims of other databases may bring."""
        return 0

    def emptied(self, asked: int) -> bool:
        """The claim found nothing, and nothing runs: whether that is so everywhere."""
        return True

    async def idle(self) -> None:
        await self.pool.idle()


class HandlerPool:
    """``room`` is called when more can be claimed, ``freed`` when nothing more is written for a
    job."""

    def __init__(
        self,
        slots: Slots,
        executor: HandlerExecutor,
        lease_check: LeaseCheck,
        unhandled: Unhandled,
        heartbeat: Heartbeat,
        settler: Settler,
        threads: Threads,
        room: Callable[[], None],
        freed: Callable[[], None],
        observers: Sequence[Observer],
    ) -> None:
        self._observers = observers
        self._slots = slots
        self._executor = executor
        self._lease_check = lease_check
        self._unhandled = unhandled
        self._heartbeat = heartbeat
        self._settler = settler
        self._threads = threads
        self._room = room
        self._freed = freed
        settler.done = self._settled
        slots.attach(self)
        self._queued: deque[Job] = deque()
        self._running: set[Job] = set()
        # What one handler sets is not there for the next, whose task it may start.
        self._context = copy_context()
        self._context.run(watch, slots.total)
        self._idle = asyncio.Event()
        self._idle.set()
        self._refill_below = 0
        self._prefetch = _Prefetch()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def jobs(self) -> AbstractSet[Job]:
        """Whose handlers run."""
        return self._running

    @property
    def busy(self) -> int:
        """Slots that are taken: also by calls that nothing waits for any more."""
        return len(self._running) + self._threads.abandoned

    @property
    def queued(self) -> int:
        return len(self._queued)

    def room(self) -> int:
        """How many more to claim now: what can start at once, and a little ahead of it. Nothing
        while at least half of that is still queued."""
        ahead = self._prefetch.ahead()
        self._refill_below = ahead // 2
        if len(self._queued) > self._refill_below:
            return 0
        return max(0, self._slots.room(self.busy) + ahead - len(self._queued))

    def add(self, jobs: list[Job]) -> None:
        """Queues them, and starts what can start."""
        self._queued.extend(jobs)
        moment = now()
        for job in jobs:
            job.queued_at = moment
            self._heartbeat.hold(job, float("inf"))
        self._idle.clear()
        self._start()
        self._note_idle()

    def give_back(self, jobs: list[Job]) -> None:
        """They came too late to start."""
        for job in jobs:
            self._settler.put(job, GIVE_BACK)

    def give_back_if_waiting(self, seconds: float) -> int:
        """Gives the queue back if its first job has waited for ``seconds``, and returns how many
        jobs that were: handlers take longer than those before them, and other workers may be free.
        All of it, so that no message overtakes an older one of its channel."""
        if not self._queued or now() - self._queued[0].queued_at < seconds:
            return 0
        waiting = len(self._queued)
        self._prefetch.reset()
        self.give_back_queued()
        return waiting

    def give_back_queued(self) -> None:
        while self._queued:
            self._settler.put(self._queued.popleft(), GIVE_BACK)
        self._note_idle()

    def interrupt_all(self, why: Interruption) -> None:
        for job in list(self._running):
            self.interrupt(job, why)

    def abandon_all(self) -> list[asyncio.Task[None]]:
        """Gives back what still runs though it was interrupted, and returns its tasks; what they do
        to their messages later is refused."""
        tasks = []
        for job in list(self._running):
            _log.error(
                "handler ignored its cancellation; abandoning it",
                extra=job.log_fields(),
            )
            kept = CANCEL if job.cancel_requested else GIVE_BACK
            outcome: Outcome = LEAVE if job.settled or job.lost else kept
            job.outcome = outcome_name(outcome)
            self._settler.put(job, outcome)
            job.lost = True
            if job.task is not None:
                tasks.append(job.task)
        return tasks

    def interrupt(self, job: Job, why: Interruption) -> None:
        """A thread cannot be stopped, nor one of many messages that are handled at once: it says
        that the lease is lost or that it is to be cancelled, and it keeps its place until it
        ends; only a worker that shuts down does not wait for it."""
        if why == "lost":
            job.lost = True
        handler = job.handler
        goes_on = handler is not None and (handler.run == "thread" or handler.batch is not None)
        stays = goes_on and why != "shutdown"
        if job.task is None or job.interruption is not None or stays:
            return
        job.interruption = why
        job.task.cancel()

    def cancel(self, leases: list[HeldLease]) -> None:
        """What runs is interrupted; what is still queued here ends without its handler."""
        wanted = set(leases)
        for job in [job for job in self._queued if (job.id, job.fence) in wanted]:
            self._queued.remove(job)
            self._settler.put(job, CANCEL)
        for job in list(self._running):
            if (job.id, job.fence) in wanted and not job.cancel_requested:
                _log.info("cancelling by request", extra=job.log_fields())
                job.cancel_requested = True
                self.interrupt(job, "cancelled")
        self._note_idle()

    def lease_lost(self, job: Job) -> None:
        """The heartbeat found that somebody else may have the message."""
        if not (job.lost or job.settled or job.in_transaction):
            self._report_lost(job)
            self.interrupt(job, "lost")

    def _settled(self, job: Job, result: Settled | None) -> None:
        """Nothing more is written for the job; ``result`` is the database's."""
        self._heartbeat.release(job)
        if not job.closed:  # a handler that was abandoned may end later
            job.closed = True
            self._tell_settled(job, result)
        self._freed()

    def _tell_settled(self, job: Job, result: Settled | None) -> None:
        if job.failure is not None:
            self._executor.report_later(job, result)
        if result is None and job.own_result is None and job.lost:  # before anything was written
            result = Settled(job.id, job.fence, "lost")
        answer = result or job.own_result
        if answer is not None and answer.lost and not job.lost_reported:
            self._report_lost(job)
        job.lost = True  # what a handler that goes on in its thread does to it is refused
        for observer in self._observers:
            observer.settled(job, result)

    def refill(self) -> None:
        """A place came free by itself: start what is queued, or have more claimed."""
        self._start()
        self._room()

    async def idle(self) -> None:
        """Waits until nothing runs and nothing is queued."""
        await self._idle.wait()

    def _start(self) -> None:
        while self._queued and self._slots.take(self.busy):
            job = self._queued.popleft()
            self._running.add(job)
            job.task = asyncio.create_task(self._run(job), context=self._context.copy())

    async def _run(self, job: Job) -> None:
        outcome: Outcome = LEAVE
        try:
            if job.deadline > now() or await self._lease_check.regain(job):
                outcome = await self._outcome(job)
        except asyncio.CancelledError:
            # Before its handler began, or after it ended: no attempt is counted.
            kept = CANCEL if job.cancel_requested else GIVE_BACK
            outcome = LEAVE if job.settled or job.lost else kept
        except Exception as error:  # ours, or a log handler's: not the fault of the message
            _log.exception("the worker failed to process a message", extra=job.log_fields())
            outcome = Defer(timedelta(minutes=1), error=error)
        finally:
            try:
                self._settle(job, outcome)
                for observer in self._observers:
                    observer.ended(job, outcome_name(outcome), now() - (job.started or now()))
            finally:
                self._free_place(job)

    def _free_place(self, job: Job) -> None:
        self._running.discard(job)
        job.task = None
        self._prefetch.ended += 1
        self._start()
        self._slots.freed()
        if len(self._queued) <= self._refill_below:
            self._room()
        self._note_idle()

    async def _outcome(self, job: Job) -> Outcome:
        job.started = now()
        handler = job.handler
        if handler is None:
            return await self._unhandled.outcome(job)
        return await self._executor.execute(job, handler)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """An outcome that cannot be written is an error of its handler: a state may be anything,
        and raise anything."""
        job.outcome = outcome_name(outcome)
        try:
            self._settler.put(job, outcome)
        except Exception as error:
            _log.warning(
                "cannot write the outcome: %s", said(error, LOG_CHARACTERS), extra=job.log_fields()
            )
            self._settle_as_error(job, error)

    def _settle_as_error(self, job: Job, error: Exception) -> None:
        try:
            assert job.handler is not None
            outcome = after_error(job, job.handler, error)
            job.outcome = outcome_name(outcome)
            self._settler.put(job, outcome)
        except Exception:
            _log.exception("cannot write the error either", extra=job.log_fields())
            self._settler.put(job, _LAST_RESORT)

    def _report_lost(self, job: Job) -> None:
        job.lost_reported = True
        for observer in self._observers:
            observer.lost(job)
        _log.warning("lost the lease: another worker may have the message", extra=job.log_fields())

    def _note_idle(self) -> None:
        if not self._running and not self._queued:
            self._idle.set()


def _nothing() -> None:
    pass


class _Prefetch:
    """How much to claim ahead: what is likely to start before the next claim could bring it.
    Measures how many messages end per second."""

    def __init__(self) -> None:
        self.ended = 0
        self._since = now()
        self._rate = 0.0

    def reset(self) -> None:
        """What was measured is no longer true."""
        self.ended, self._since, self._rate = 0, now(), 0.0

    def ahead(self) -> int:
        """How many messages to hold beyond those that can start at once."""
        moment = now()
        passed = moment - self._since
        if passed >= _PREFETCH_WINDOW:
            rate = self.ended / passed
            self._rate = rate if rate > self._rate else (self._rate + rate) / 2
            self.ended, self._since = 0, moment
        return min(int(self._rate * _PREFETCH_HORIZON), MAX_PREFETCH)
