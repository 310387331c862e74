"""Running a handler: in the loop, in a thread, in a process; in a transaction or not; in time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from penstock.client.fields import MessageFields
from penstock.client.settlement import said
from penstock.errors import DecodeError

from .deciding import UndecodablePayload, after_error, after_return
from .hand import Hand, HeldMessage, HeldThreadMessage, ThreadHand
from .handlers import Handler
from .job import Job
from .outcomes import LEAVE, Outcome
from .threads import Threads

_log = logging.getLogger("penstock.worker")

Next = Callable[[], Awaitable[object]]
Middleware = Callable[[MessageFields, Next], Awaitable[object]]


class Performer:
    """Knows how to call handlers; what they return or raise becomes an outcome here."""

    def __init__(
        self,
        hand: Hand,
        thread_hand: ThreadHand,
        threads: Threads,
        middleware: Sequence[Middleware],
    ) -> None:
        self._hand = hand
        self._thread_hand = thread_hand
        self._threads = threads
        self._middleware = tuple(middleware)
        self._calls = {"async": self._call_async, "thread": self._call_thread}

    async def perform(self, job: Job, handler: Handler) -> Outcome:
        """Never raises for what the handler did; a cancellation is the worker's own doing."""
        try:
            if handler.ack == "first":
                await self._acknowledge(job)
            result = await self._in_time(job, handler)
        except asyncio.CancelledError as error:
            if job.interruption is not None:
                _uncancel()
            return after_error(job, handler, error)
        except Exception as error:
            return self._failed(job, handler, error)
        return after_return(job, handler, result)

    async def _acknowledge(self, job: Job) -> None:
        message = HeldMessage(job, self._hand)
        await message.complete()

    def _failed(self, job: Job, handler: Handler, error: Exception) -> Outcome:
        outcome = after_error(job, handler, error)
        if outcome is not LEAVE or handler.ack == "first":
            _log.warning(
                "%s failed: %s: %s",
                handler.name,
                type(error).__name__,
                said(error),
                exc_info=error,
                extra=job.log_fields(),
            )
        return outcome

    async def _in_time(self, job: Job, handler: Handler) -> object:
        if handler.timeout is None:
            return await self._through_middleware(job, handler)
        async with asyncio.timeout(handler.timeout):
            return await self._through_middleware(job, handler)

    async def _through_middleware(self, job: Job, handler: Handler) -> object:
        call = self._calls[handler.run]
        if not self._middleware:
            return await call(job, handler)

        async def innermost() -> object:
            return await call(job, handler)

        step: Next = innermost
        for middleware in reversed(self._middleware):
            step = _around(middleware, job, step)
        return await step()

    async def _call_async(self, job: Job, handler: Handler) -> object:
        binding = handler.binding
        message = HeldMessage(job, self._hand) if binding.message else None
        placed, named = _arguments(job, handler, message, None)
        return await handler.function(*placed, **named)

    async def _call_thread(self, job: Job, handler: Handler) -> object:
        message = HeldThreadMessage(job, self._thread_hand) if handler.binding.message else None

        def call() -> Any:
            placed, named = _arguments(job, handler, message, None)
            return handler.function(*placed, **named)

        return await self._threads.run(call)


def _arguments(
    job: Job, handler: Handler, message: object, transaction: object
) -> tuple[list[object], dict[str, object]]:
    try:
        return handler.binding.arguments(job, message, transaction)
    except DecodeError as error:
        raise UndecodablePayload(error) from error


def _around(middleware: Middleware, job: Job, step: Next) -> Next:
    async def run() -> object:
        return await middleware(job, step)

    return run


def _uncancel() -> None:
    """The cancellation was for the handler; what comes after it is ours."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
