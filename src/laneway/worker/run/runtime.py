"""The runtime: everything that handlers need while they run, whoever claimed their messages."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from laneway.client.aio.queue import AsyncQueue
from laneway.plan import ClaimColumn as Column
from laneway.plan import Row
from laneway.worker.clock import now
from laneway.worker.definition import WorkerDefinition
from laneway.worker.execute.executor import HandlerExecutor
from laneway.worker.execute.handler_message import HandlerSettling, LeaseCheck
from laneway.worker.execute.pool import HandlerPool, Slots
from laneway.worker.execute.processes import Processes
from laneway.worker.execute.threads import Threads
from laneway.worker.execute.transactions import HandlerTransactions, check_transactions
from laneway.worker.execute.unhandled import KindFilter, Unhandled
from laneway.worker.handlers import check_payload
from laneway.worker.heartbeat.heartbeat import Heartbeat
from laneway.worker.job import Job
from laneway.worker.settle import Settler
from laneway.worker.tasks.clients import RunningClient, running
from laneway.worker.telemetry import process_wide
from laneway.worker.telemetry.observer import Observer

from .shutdown import CLOSE_TIMEOUT, finish_within
from .watchdog import Watchdog

_MAX_TRANSACTIONS = 20


_log = logging.getLogger("laneway.worker")


class Runtime:
    """Holds up to ``max_jobs`` messages at a time. ``room`` is called when the pool can take more,
    ``freed`` when nothing more is written for a message."""

    def __init__(
        self,
        client: AsyncQueue,
        definition: WorkerDefinition,
        max_jobs: int,
        observers: Sequence[Observer],
        room: Callable[[], None],
        freed: Callable[[], None],
        slots: Slots,
        kinds: KindFilter | None = None,
    ) -> None:
        # For tasks that handlers publish: what is started from here on sees it.
        running.set(RunningClient(client, asyncio.get_running_loop(), slots.clients))
        database, options, address = client.database, definition.options, client._address
        for handler in definition.handlers.all():
            check_payload(handler)
            if handler.batch is not None and handler.batch.size > options.concurrency:
                _log.warning(
                    "%s takes %d messages at once, but the worker's concurrency is %d: raise it",
                    handler.name,
                    handler.batch.size,
                    options.concurrency,
                )
        check_transactions(definition.handlers.all(), database.engine.lacks, address.url)
        lease = options.lease.total_seconds()
        self.heartbeat = Heartbeat(
            address,
            lease,
            max_jobs,
            lambda job: self.pool.lease_lost(job),
            by_process=options.when_empty is None,
        )
        self.settler = Settler(database, self.heartbeat, options.traceback)
        self._threads = Threads(lambda: self.pool.refill())
        self._processes = Processes(
            slots.processes or asyncio.Semaphore(options.processes),
            database.options.max_payload,
            self.heartbeat.note,
        )
        self._transactions = HandlerTransactions(
            address, min(options.concurrency, _MAX_TRANSACTIONS)
        )
        settling = HandlerSettling(
            database, self.heartbeat.release, options.traceback, self.heartbeat.note
        )
        lease_check = LeaseCheck(self.heartbeat, settling)
        executor = self._executor = HandlerExecutor(
            database,
            settling,
            lease_check,
            self._threads,
            self._processes,
            self._transactions,
            definition.middleware,
            definition.hooks,
            options.traceback,
            options.concurrency,
        )
        self.pool = HandlerPool(
            slots,
            executor,
            lease_check,
            Unhandled(database, kinds, options.unhandled_delay, options.unhandled_timeout),
            self.heartbeat,
            self.settler,
            self._threads,
            room,
            freed,
            observers,
        )

        self._watchdog = Watchdog(self.pool)

    async def close(self) -> None:
        running.set(None)
        self._watchdog.close()
        await finish_within(self._executor.close(), CLOSE_TIMEOUT)
        self._threads.close()
        self._processes.close()
        await finish_within(self._transactions.close(), CLOSE_TIMEOUT)
        self.heartbeat.close()


# Messages that another process claimed, processed here until each has its outcome.


class Preclaimed(NamedTuple):
    """A message whose lease is handed over; ``left`` seconds of it are left by the database's
    clock. The row is one of ``contract.Taken``."""

    row: Row
    claimed_at: datetime
    until: datetime
    left: float


async def run_preclaimed(
    definition: WorkerDefinition,
    max_jobs: int,
    take: Callable[[], Sequence[Preclaimed]],
    observers: Sequence[Observer],
) -> None:
    """Calls ``take`` (in a thread) once leases can be extended here; up to ``max_jobs`` messages.

    Start and stop hooks are called around it, as around a worker's run, however it ends. Leases are
    extended until every outcome is written.
    """
    await definition.hooks.call("start")
    try:
        await _run(definition, max_jobs, take, observers)
    finally:
        await definition.hooks.call_safely("stop")


async def _run(
    definition: WorkerDefinition,
    max_jobs: int,
    take: Callable[[], Sequence[Preclaimed]],
    observers: Sequence[Observer],
) -> None:
    async with definition.open_client() as client:
        everyone = (*process_wide.observers, *observers)
        slots = Slots(definition.options.concurrency)
        runtime = Runtime(client, definition, max_jobs, everyone, _nothing, _nothing, slots)
        runtime.heartbeat.start()
        writing = asyncio.create_task(runtime.settler.work())
        try:
            await runtime.heartbeat.until_ready()
            asked = now()
            taken = await asyncio.to_thread(take)
            runtime.pool.add([_job(definition, asked, one) for one in taken])
            await _wait_for(asyncio.create_task(runtime.pool.idle()), writing)
            await _wait_for(asyncio.create_task(runtime.settler.empty()), writing)
        finally:
            writing.cancel()
            await runtime.close()


def _job(definition: WorkerDefinition, asked: float, taken: Preclaimed) -> Job:
    row, claimed_at, until, left = taken
    return Job(row, claimed_at, until, asked + left, definition.handlers.find(row[Column.KIND]))


async def _wait_for(wanted: asyncio.Task[None], writing: asyncio.Task[None]) -> None:
    """The writing does not end by itself: if it does, it has failed, and ends the run."""
    await asyncio.wait([wanted, writing], return_when="FIRST_COMPLETED")
    if writing.done():
        wanted.cancel()
        writing.result()


def _nothing() -> None:
    pass
