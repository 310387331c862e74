"""Handlers that take many messages at once: gathers them, calls once, gives each its own result.

Messages are claimed, limited and settled one by one, as for every handler; they only wait for each
other here. Each holds its place in the pool meanwhile.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from laneway.errors import DecodeError, HandlerFailed, shown
from laneway.worker.clock import now
from laneway.worker.handlers import Handler, timing_out
from laneway.worker.job import Job, UndecodablePayload
from laneway.worker.outcomes import Defer, Fail, Throttled
from laneway.worker.telemetry.logs import handling

from .handler_message import LeaseCheck, TooLate
from .threads import Threads

AsMessage = Callable[[Job], Any]


@dataclass(slots=True, eq=False)
class _Member:
    job: Job
    result: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class _Gathering:
    handler: Handler
    members: list[_Member] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    call: asyncio.Task[None] | None = None


class Batches:
    """``most`` messages can wait at a time: a batch never holds more. The two functions make the
    messages for handlers in the event loop and in threads."""

    def __init__(
        self,
        most: int,
        threads: Threads,
        lease_check: LeaseCheck,
        for_async: AsMessage,
        for_thread: AsMessage,
    ) -> None:
        self._most = most
        self._threads = threads
        self._lease_check = lease_check
        self._for_async = for_async
        self._for_thread = for_thread
        self._open: dict[int, _Gathering] = {}

    async def join(self, job: Job, handler: Handler) -> object:
        """Its own part of what the handler returned, or raises what is wrong with it."""
        assert handler.batch is not None
        loop = asyncio.get_running_loop()
        batch = self._open.get(id(handler))
        if batch is None:
            batch = self._open[id(handler)] = _Gathering(handler)
            batch.timer = loop.call_later(handler.batch.wait, self._begin, batch)
        member = _Member(job, loop.create_future())
        batch.members.append(member)
        if len(batch.members) >= min(handler.batch.size, self._most):
            self._begin(batch)
        try:
            return await member.result
        finally:
            self._leave(batch)

    def _begin(self, batch: _Gathering) -> None:
        if self._open.pop(id(batch.handler), None) is None:
            return
        if batch.timer is not None:
            batch.timer.cancel()
        batch.call = asyncio.create_task(self._call(batch))

    def _leave(self, batch: _Gathering) -> None:
        """The call goes on as long as somebody waits for it."""
        if all(member.result.done() for member in batch.members):
            if batch.call is not None:
                batch.call.cancel()
            elif self._open.get(id(batch.handler)) is batch:
                self._open.pop(id(batch.handler))
                if batch.timer is not None:
                    batch.timer.cancel()

    async def _call(self, batch: _Gathering) -> None:
        ready: list[_Member] = []
        try:
            payloads = []
            for member in [one for one in batch.members if await self._may_begin(one)]:
                if (payload := _payload(batch.handler, member)) is not None:
                    payloads.append(payload[0])
                    ready.append(member)
            if ready:
                _share(batch.handler, ready, await self._result(batch.handler, ready, payloads))
        except BaseException as error:  # the handler's, whatever it is: it decides the outcomes
            if isinstance(error, StopIteration):
                error = RuntimeError(f"the handler raised {error!r}")
            for member in batch.members:
                if not member.result.done():
                    member.result.set_exception(error)

    async def _may_begin(self, member: _Member) -> bool:
        """Whether its lease is still ours, after the wait for the others."""
        job = member.job
        if not member.result.done() and job.cancel_requested:
            member.result.cancel()
        elif not member.result.done() and (
            job.lost or (job.deadline <= now() and not await self._lease_check.regain(job))
        ):
            member.result.set_exception(TooLate())
        return not member.result.done()

    async def _result(
        self, handler: Handler, ready: Sequence[_Member], payloads: list[object]
    ) -> object:
        assert handler.batch is not None
        named: dict[str, object] = {}
        make = self._for_async if handler.run == "async" else self._for_thread
        if handler.batch.messages is not None:
            named[handler.batch.messages] = [make(member.job) for member in ready]
        handling([member.job for member in ready])
        for member in ready:
            member.job.started = now()
            if handler.timeout is not None:
                self._lease_check.limit(member.job, handler.timeout)
        async with timing_out(handler):
            if handler.run == "async":
                result: object = await handler.function(payloads, **named)
                return result
            return await self._threads.run(lambda: handler.function(payloads, **named))


def _payload(handler: Handler, member: _Member) -> list[object] | None:
    """What is wrong with one payload is not the fault of the others."""
    try:
        return handler.binding.arguments(member.job, None, None)[0]
    except DecodeError as error:
        member.result.set_exception(UndecodablePayload(error))
        return None


def _share(handler: Handler, ready: Sequence[_Member], result: object) -> None:
    results = [None] * len(ready) if result is None else result
    if not isinstance(results, list | tuple) or len(results) != len(ready):
        raise HandlerFailed(
            f"{handler.name} returned {shown(result)}: a batch task returns None, or a list with "
            f"one outcome for each of its {len(ready)} messages"
        )
    for member, one in zip(ready, results, strict=True):
        if member.result.done():
            continue
        if isinstance(one, BaseException) and not isinstance(one, Defer | Fail | Throttled):
            member.result.set_exception(one)
        else:
            member.result.set_result(one)
