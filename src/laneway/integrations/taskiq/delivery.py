"""A message on its way through taskiq: published as its labels say, then held until taskiq's
receiver acknowledges it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from taskiq import BrokerMessage, TaskiqFormatter, TaskiqMessage, TaskiqMiddleware, TaskiqResult
from taskiq.exceptions import NoResultError

from laneway.client.aio.message import AsyncMessage
from laneway.errors import LeaseLost

# Taskiq sends labels as text; those of other brokers have the same names where they mean the same.
_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "channel": ("channel", str),
    "queue_name": ("queue", str),
    "priority": ("priority", int),
    "delay": ("delay", float),
    "expires_in": ("expires_in", float),
    "key": ("key", str),
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
