"""A broker for taskiq: its tasks are messages, and one of our workers fetches them. A message is
published as its labels say, then held until taskiq's receiver has ended it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from taskiq import (
    AckableMessage,
    AsyncBroker,
    BrokerMessage,
    TaskiqFormatter,
    TaskiqMessage,
    TaskiqMiddleware,
    TaskiqResult,
)
from taskiq.exceptions import NoResultError

from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.durations import Duration
from laneway.errors import LeaseLost
from laneway.worker.worker import Worker

# Taskiq sends labels as text; those of other brokers have the same names where they mean the same.
_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "channel": ("channel", str),
    "queue_name": ("queue", str),
    "priority": ("priority", int),
    "delay": ("delay", float),
    "expires_in": ("expires_in", float),
    "key": ("key", str),
    "key_scope": ("key_scope", str),
    "key_window": ("key_window", float),
    "max_attempts": ("max_attempts", int),
}


def publish_options(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``queue.publish`` among the labels."""
    return {
        option: convert(labels[label])
        for label, (option, convert) in _OPTIONS.items()
        if labels.get(label) is not None
    }


_log = logging.getLogger("laneway.taskiq")

# The receiver runs a task, its middlewares and the acknowledgement in one asyncio task: what is
# noted in its context by one is seen by the next, and by no other message.
_failure: ContextVar[BaseException | None] = ContextVar("laneway_taskiq_failure", default=None)
_sent_again: ContextVar[str | None] = ContextVar("laneway_taskiq_sent_again", default=None)


class WatchedFormatter(TaskiqFormatter):  # type: ignore[misc]
    """The broker's formatter. The receiver reads a message in the asyncio task that it has for it:
    only here can it be seen which one that is."""

    def __init__(self, formatter: TaskiqFormatter, under_way: "Mapping[int, Delivery]") -> None:
        self._formatter = formatter
        self._under_way = under_way

    def dumps(self, message: TaskiqMessage) -> BrokerMessage:
        return self._formatter.dumps(message)

    def loads(self, message: bytes) -> TaskiqMessage:
        delivery, work = self._under_way.get(id(message)), asyncio.current_task()
        if delivery is not None and work is not None:
            delivery.watch(work)
        return self._formatter.loads(message)


class NotAcknowledged(Exception):
    """The receiver dropped a message without a word: a middleware raised, or a task with
    ``ack_type="manual"`` did not acknowledge it."""


class NoteFailures(TaskiqMiddleware):  # type: ignore[misc]
    """Notes that a task has failed for good, for the acknowledgement that follows. Must be the
    first middleware, which hears of errors last: after those that send a task again."""

    def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        # The receiver's context is a copy of that of its start, which may have sent tasks too.
        _failure.set(None)
        _sent_again.set(None)
        return message

    async def on_error(
        self, message: TaskiqMessage, result: TaskiqResult[Any], exception: BaseException
    ) -> None:
        again = isinstance(result.error, NoResultError) or _sent_again.get() == message.task_id
        _failure.set(None if again else exception)


def note_sent(task_id: str) -> None:
    """A task that sends itself again, or is sent again by a middleware, has not failed yet."""
    _sent_again.set(task_id)


class Delivery:
    """The worker's handler waits for ``ended``; the receiver calls what :meth:`ack` returns."""

    def __init__(self, message: AsyncMessage, known: Callable[[str], bool], bury: bool) -> None:
        self.message = message
        self.data = bytes(message.payload)
        self._known = known
        self._bury = bury
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def ack(self) -> "Ack":
        return Ack(self)

    async def settle(self) -> None:
        """Completed, or a dead letter if the task has failed or is none of ours."""
        try:
            await self._settle()
        except LeaseLost as error:
            _log.warning("%s; the task has run and may run again", error)
        finally:
            self.end()

    async def give_back(self) -> None:
        with suppress(LeaseLost):
            await self.message.give_back()
        self.end()

    def _settle(self) -> Awaitable[None]:
        failure = _failure.get()
        if not self._known(self.message.kind):
            # Taskiq acknowledges it with a warning; here nobody's work is thrown away.
            return self.message.fail(f"there is no task {self.message.kind!r} in this worker")
        if failure is not None and self._bury:
            return self.message.fail("error", error=failure)
        return self.message.complete()

    def end(self, error: Exception | None = None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def watch(self, work: "asyncio.Task[Any]") -> None:
        """The receiver's task for this message: if it breaks, nobody will acknowledge it."""
        work.add_done_callback(self._after)

    def _after(self, work: "asyncio.Task[Any]") -> None:
        error = None if work.cancelled() else work.exception()
        if error is not None:
            _log.error("message %d: %r outside of its task", self.message.id, error, exc_info=error)
        if error is not None or work.cancelled():
            self.dropped()

    def dropped(self) -> None:
        """Called from wherever the garbage is collected."""
        if not self.ended.done():
            with suppress(RuntimeError):  # the loop is closed: the lease runs out
                self._loop.call_soon_threadsafe(self.end, NotAcknowledged("not acknowledged"))


class Ack:
    """What taskiq calls; if it never does, and lets go of it, the attempt has failed."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    async def __call__(self) -> None:
        await self._delivery.settle()

    def __del__(self) -> None:
        self._delivery.dropped()


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
    ``key_scope``, ``key_window``, ``max_attempts``, ``queue_name``.

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
