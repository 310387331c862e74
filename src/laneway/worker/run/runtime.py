"""The runtime: everything that handlers need while they run, whoever claimed their messages."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from laneway.client.aio.queue import AsyncQueue
from laneway.worker.definition import WorkerDefinition
from laneway.worker.execute.executor import HandlerExecutor
from laneway.worker.execute.handler_message import HandlerSettling
from laneway.worker.execute.kind_filter import KindFilter
from laneway.worker.execute.lease_check import LeaseCheck
from laneway.worker.execute.pool import HandlerPool
from laneway.worker.execute.processes import Processes
from laneway.worker.execute.threads import Threads
from laneway.worker.execute.transactions import HandlerTransactions, check_transactions
from laneway.worker.execute.unhandled import Unhandled
from laneway.worker.handlers import check_payload
from laneway.worker.heartbeat.heartbeat import Heartbeat
from laneway.worker.settle.settler import Settler
from laneway.worker.tasks.clients import RunningClient, running
from laneway.worker.telemetry.observer import Observer

from .shutdown import CLOSE_TIMEOUT, finish_within

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
        kinds: KindFilter | None = None,
    ) -> None:
        # For tasks that handlers publish: what is started from here on sees it.
        running.set(RunningClient(client, asyncio.get_running_loop()))
        core, options, address = client._core, definition.options, client._address
        for handler in definition.handlers.all():
            check_payload(handler)
            if handler.batch is not None and handler.batch.size > options.concurrency:
                _log.warning(
                    "%s takes %d messages at once, but the worker's concurrency is %d: raise it",
                    handler.name,
                    handler.batch.size,
                    options.concurrency,
                )
        check_transactions(definition.handlers.all(), core.engine.lacks)
        lease = options.lease.total_seconds()
        self.heartbeat = Heartbeat(address, lease, max_jobs, lambda job: self.pool.lease_lost(job))
        self.settler = Settler(core, self.heartbeat, options.traceback)
        self._threads = Threads(lambda: self.pool.refill())
        self._processes = Processes(
            options.processes, core.options.max_payload, self.heartbeat.note
        )
        self._transactions = HandlerTransactions(
            address, min(options.concurrency, _MAX_TRANSACTIONS)
        )
        settling = HandlerSettling(
            core, self.heartbeat.release, options.traceback, self.heartbeat.note
        )
        lease_check = LeaseCheck(self.heartbeat, settling)
        executor = HandlerExecutor(
            core,
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
            options.concurrency,
            executor,
            lease_check,
            Unhandled(core, kinds, options.unhandled_delay, options.unhandled_timeout),
            self.heartbeat,
            self.settler,
            self._threads,
            room,
            freed,
            observers,
        )

    async def close(self) -> None:
        running.set(None)
        self._threads.close()
        self._processes.close()
        await finish_within(self._transactions.close(), CLOSE_TIMEOUT)
        self.heartbeat.close()
