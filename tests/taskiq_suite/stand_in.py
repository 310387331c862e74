"""A plugin for pytest: taskiq's tests get Laneway's broker and result backend where they ask for
the in-memory ones. Taskiq's own receiver runs beside it in the same process, as it does there. Each
broker has a queue of its own in a SQLite file."""

import asyncio
import atexit
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import taskiq
from taskiq import BrokerMessage
from taskiq.brokers import inmemory_broker
from taskiq.events import TaskiqEvents
from taskiq.receiver import Receiver
from taskiq.utils import maybe_awaitable

from laneway import AsyncQueue
from laneway.integrations.taskiq import LanewayBroker, LanewayResultBackend

_home = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _home, ignore_errors=True)


class InMemoryBroker(LanewayBroker):
    """Takes what taskiq's in-memory broker takes, and has what their tests look at."""

    def __init__(
        self,
        sync_tasks_pool_size: int = 4,
        max_stored_results: int = 100,
        cast_types: bool = True,
        max_async_tasks: int = 30,
        max_async_tasks_jitter: int = 0,
        propagate_exceptions: bool = True,
        await_inplace: bool = False,
    ) -> None:
        file = Path(tempfile.mkdtemp(dir=_home)) / "jobs.db"
        super().__init__(AsyncQueue(f"sqlite:///{file}"))
        self.result_backend: LanewayResultBackend[Any] = LanewayResultBackend(self.queue)
        self.executor = ThreadPoolExecutor(sync_tasks_pool_size)
        self.receiver = Receiver(
            broker=self,
            executor=self.executor,
            validate_params=cast_types,
            max_async_tasks=max_async_tasks,
            max_async_tasks_jitter=max_async_tasks_jitter,
            propagate_exceptions=propagate_exceptions,
        )
        self.await_inplace = await_inplace
        self._running_tasks: set[asyncio.Task[Any]] = set()
        self._listening: asyncio.Task[None] | None = None

    async def kick(self, message: BrokerMessage) -> None:
        if self._listening is None:
            await self.queue.install()
            await self.result_backend.startup()
            self._listening = asyncio.create_task(self._listen())
        await super().kick(message)
        if self.await_inplace:
            await self.wait_all()

    async def _listen(self) -> None:
        async for message in self.listen():
            task = asyncio.create_task(self.receiver.callback(message))
            self._running_tasks.add(task)
            task.add_done_callback(self._running_tasks.discard)

    async def wait_all(self) -> None:
        """Until nothing waits that is due, and nothing runs."""
        while self._running_tasks or any(  # noqa: ASYNC110
            n.waiting or n.leased for n in await self.queue.stats()
        ):
            await asyncio.sleep(0.01)

    async def startup(self) -> None:
        """Of a client and of a worker, which are one process here."""
        await self.queue.install()
        await super().startup()
        for handler in self.event_handlers.get(TaskiqEvents.WORKER_STARTUP, []):
            await maybe_awaitable(handler(self.state))

    async def shutdown(self) -> None:
        for handler in self.event_handlers.get(TaskiqEvents.WORKER_SHUTDOWN, []):
            await maybe_awaitable(handler(self.state))
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        await super().shutdown()
        self.executor.shutdown()


taskiq.InMemoryBroker = InMemoryBroker
inmemory_broker.InMemoryBroker = InMemoryBroker
