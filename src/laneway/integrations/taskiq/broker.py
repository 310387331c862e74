"""A broker for taskiq: its tasks are messages, and one of our workers fetches them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from taskiq import AckableMessage, AsyncBroker, BrokerMessage, TaskiqFormatter

from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.durations import Duration
from laneway.worker.worker import Worker

from .delivery import Delivery, NoteFailures, WatchedFormatter, note_sent, publish_options

_log = logging.getLogger("laneway.taskiq")

CONCURRENCY = 100  # taskiq's own --max-async-tasks
# How long a task may take to end is for taskiq to say (--wait-tasks-timeout).
_GRACE = timedelta(days=365)

_connection: ContextVar[object] = ContextVar("laneway_taskiq_connection", default=None)


class LanewayBroker(AsyncBroker):  # type: ignore[misc]
    """Sends taskiq's tasks through a queue, and gives them to its workers.

    ``queue`` is a client or a URL; ``queues`` are those that a worker listens to, by default the
    client's own. ``concurrency`` is how many messages a worker process holds at a time: that of
    ``--max-async-tasks``. A task that failed for good becomes a dead letter unless
    ``dead_letters=False``. With ``install`` the schema is installed or upgraded at the start.

    Labels of a task or of a call: ``channel``, ``priority``, ``delay``, ``expires_in``, ``key``,
    ``key_window``, ``max_attempts``, ``queue_name``.

    >>> broker = LanewayBroker("postgresql://localhost/shop")
    >>> @broker.task(priority=5)
    ... async def send_receipt(order: int) -> None: ...
    >>> await send_receipt.kicker().with_labels(channel="tenant-42").kiq(9182)
    """

    def __init__(
        self,
        queue: AsyncQueue | str,
        *,
        queues: Iterable[str] | None = None,
        concurrency: int = CONCURRENCY,
        lease: Duration | None = None,
        dead_letters: bool = True,
        install: bool = False,
    ) -> None:
        self._under_way: dict[int, Delivery] = {}
        super().__init__()
        self.queue = AsyncQueue(queue) if isinstance(queue, str) else queue
        self._dead_letters = dead_letters
        self._install = install
        self._worker = Worker(
            self.queue, concurrency=concurrency, queues=queues, lease=lease, grace=_GRACE
        )
        self._worker.default_handler(self._deliver)
        self._ready: asyncio.Queue[Delivery] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self.add_middlewares(NoteFailures())

    @property
    def formatter(self) -> TaskiqFormatter:
        return self._formatter

    @formatter.setter
    def formatter(self, formatter: TaskiqFormatter) -> None:
        self._formatter = WatchedFormatter(formatter, self._under_way)

    async def startup(self) -> None:
        if self._install:
            await self.queue.install()
        await super().startup()

    async def shutdown(self) -> None:
        """What has not been acknowledged by now is given back."""
        for delivery in [*self._under_way.values()]:
            await delivery.give_back()
        await self._stop()
        await super().shutdown()
        await self.queue.close()

    @contextmanager
    def using(self, *, connection: object) -> Iterator[None]:
        """Tasks that are sent inside belong to the transaction of this connection of yours.

        >>> async with session.begin():
        ...     session.add(order)
        ...     with broker.using(connection=session):
        ...         await send_receipt.kiq(order.id)
        """
        token = _connection.set(connection)
        try:
            yield
        finally:
            _connection.reset(token)

    async def kick(self, message: BrokerMessage) -> None:
        await self.queue.publish(
            message.message,
            kind=message.task_name,
            headers={"taskiq-task-id": message.task_id},
            connection=_connection.get(),
            **publish_options(message.labels),
        )
        note_sent(message.task_id)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Runs a worker as long as it is listened to."""
        self._work = asyncio.create_task(self._worker.serve())
        try:
            while True:
                delivery = await self._next()
                # Not checked and so not copied: the formatter knows it by its identity.
                yield AckableMessage.model_construct(data=delivery.data, ack=delivery.ack())
        finally:
            self._worker.stop()
            while not self._ready.empty():
                await self._ready.get_nowait().give_back()

    async def _next(self) -> Delivery:
        """Raises what ended the worker."""
        assert self._work is not None
        waiting = asyncio.create_task(self._ready.get())
        try:
            await asyncio.wait({waiting, self._work}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
        finally:
            if waiting.cancel():
                # One that came just now is not lost with the wait for it.
                with suppress(asyncio.CancelledError):
                    self._ready.put_nowait(await waiting)
        await self._work
        raise RuntimeError("the worker of the broker has stopped")

    async def _deliver(self, payload: bytes, message: AsyncMessage) -> None:
        delivery = Delivery(message, self._is_known, self._dead_letters)
        self._under_way[id(delivery.data)] = delivery
        try:
            self._ready.put_nowait(delivery)
            await delivery.ended
        finally:
            del self._under_way[id(delivery.data)]

    def _is_known(self, task_name: str) -> bool:
        return self.find_task(task_name) is not None

    async def _stop(self) -> None:
        work, self._work = self._work, None
        if work is None:
            return
        self._worker.stop()
        (ended,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(ended, Exception):
            _log.error("the worker of the broker ended: %s", ended, exc_info=ended)


def connection_in_use() -> Any:
    """The connection of :meth:`LanewayBroker.using`, None outside of it."""
    return _connection.get()
