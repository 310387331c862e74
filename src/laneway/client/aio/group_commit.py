"""Group commit for tasks: while one flush is under way, later calls wait and go together.

A lone call goes at once. A flush that takes long waits for somebody's lock, perhaps for that of a
caller who waits here: those behind it go on without it, on another connection.

One group may wait for another's flush to land, so that the callers it answers can join: eight tasks
that claim and complete would otherwise split into two halves for good, each with round trips of its
own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from laneway.drivers.runner import other_loop
from laneway.errors import ConnectionUnavailable, LanewayError

_log = logging.getLogger("laneway")

PATIENCE = 0.1  # seconds; a flush that takes longer waits for a lock
_LANDING = 0.02  # seconds; to join those of another flush is worth no more

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class AsyncGroup(Generic[Part, Answer]):
    """Merges calls into flushes of at most ``most``, by ``size`` of their parts.

    ``undo`` gets an answer whose caller was cancelled meanwhile. ``before`` is awaited before it is
    decided who goes together. A flush runs in a task of its own, so that cancelling a caller
    disturbs no other.
    """

    def __init__(
        self,
        flush: Callable[[list[Part]], Awaitable[list[Answer]]],
        size: Callable[[Part], int],
        most: int,
        undo: Callable[[Answer], Awaitable[None]] | None = None,
        before: Callable[[], Awaitable[None]] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._flush = flush
        self._size = size
        self._most = most
        self._undo = undo
        self._before = before
        self._patience = patience
        self._waiting: list[tuple[Part, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None
        self._overdue: set[asyncio.Task[None]] = set()
        self._flight: asyncio.Future[None] | None = None

    async def call(self, part: Part) -> Answer:
        loop = asyncio.get_running_loop()
        if self._task is not None and self._task.get_loop() is not loop:
            raise other_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((part, future))
        if self._task is None:
            self._start()
        try:
            return await future
        except asyncio.CancelledError:
            # The answer may have come in the same turn of the loop as the cancellation.
            if future.done() and not future.cancelled() and future.exception() is None:
                await self._take_back(future.result())
            raise

    async def drain(self) -> None:
        """Waits for the calls that are under way."""
        while tasks := {*self._overdue, *([self._task] if self._task else [])}:
            await asyncio.wait(tasks)

    async def landed(self) -> None:
        """Waits for the flush that is under way, but not for long."""
        if self._flight is not None:
            await asyncio.wait([self._flight], timeout=_LANDING)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while self._waiting and task not in self._overdue:
                if self._before is not None:
                    await self._before()
                await self._fly(self._next_batch(), task)
        finally:
            if task in self._overdue:
                self._overdue.remove(task)
            else:
                self._task = None

    async def _fly(
        self, batch: list[tuple[Part, asyncio.Future[Answer]]], task: asyncio.Task[None]
    ) -> None:
        if not batch:
            return
        loop = asyncio.get_running_loop()
        flight = self._flight = loop.create_future()
        alarm = loop.call_later(self._patience, self._go_on_without, task)
        try:
            await self._settle(batch)
        finally:
            alarm.cancel()
            if self._flight is flight:
                self._flight = None
            flight.set_result(None)

    def _go_on_without(self, task: asyncio.Task[None]) -> None:
        self._overdue.add(task)
        self._task = None
        if self._waiting:
            self._start()

    def _next_batch(self) -> list[tuple[Part, asyncio.Future[Answer]]]:
        batch: list[tuple[Part, asyncio.Future[Answer]]] = []
        total = 0
        while self._waiting:
            part, future = self._waiting[0]
            total += self._size(part)
            if batch and total > self._most:
                break
            del self._waiting[0]
            if not future.cancelled():
                batch.append((part, future))
        return batch

    async def _settle(self, batch: list[tuple[Part, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._flush([part for part, _ in batch])
        except (LanewayError, ValueError, TypeError) as error:
            await self._settle_failed(batch, error)
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            for _, future in batch:
                _refuse(future, error)
        else:
            unwanted = []
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.cancelled():
                    unwanted.append(answer)
                else:
                    future.set_result(answer)
            for answer in unwanted:
                await self._take_back(answer)

    async def _settle_failed(
        self, batch: list[tuple[Part, asyncio.Future[Answer]]], error: Exception
    ) -> None:
        """One part may be at fault: each goes by itself, unless the connection is gone."""
        if len(batch) == 1 or isinstance(error, ConnectionUnavailable):
            for _, future in batch:
                _refuse(future, error)
            return
        for entry in batch:
            await self._settle([entry])

    async def _take_back(self, answer: Answer) -> None:
        if self._undo is None:
            return
        try:
            await asyncio.shield(self._undo(answer))
        except LanewayError as error:
            # Nobody is left to be told; what was claimed comes back when its lease runs out.
            _log.warning("an answer that nobody waits for could not be undone: %s", error)


def _refuse(future: "asyncio.Future[Answer]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
