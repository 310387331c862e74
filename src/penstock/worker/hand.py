"""What a handler does to its message by hand: the client's verbs, noted on the job."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from penstock.client.async_core import AsyncCore
from penstock.client.async_message import AsyncMessage
from penstock.client.async_settling import AsyncSettling
from penstock.client.fields import MessageFields
from penstock.client.sync_core import Core
from penstock.client.sync_message import Message
from penstock.client.sync_settling import Settling
from penstock.model import Settled

from .clock import now
from .job import Job

T = TypeVar("T")


class HeldMessage(AsyncMessage):
    """The message for an async handler."""

    __slots__ = ("job",)

    def __init__(self, job: Job, settling: AsyncSettling) -> None:
        super().__init__(job._row, job.claimed_at, job.until, settling)
        self.job = job

    @property
    def lost(self) -> bool:
        return self.job.lost


class HeldThreadMessage(Message):
    """The message for a handler in a thread."""

    __slots__ = ("job",)

    def __init__(self, job: Job, settling: Settling) -> None:
        super().__init__(job._row, job.claimed_at, job.until, settling)
        self.job = job

    @property
    def lost(self) -> bool:
        return self.job.lost


Messages = Iterable[MessageFields]


class Hand(AsyncSettling):
    """Refuses what comes after the end without asking the database, and notes what was done."""

    def __init__(self, core: AsyncCore, release: Callable[[Job], None]) -> None:
        super().__init__(core)
        self._release = release
        self._lease = core.options.lease

    async def complete(self, messages: Messages, *, connection: object = None) -> list[Settled]:
        act = super().complete
        return await self._act(messages, connection, lambda m: act(m, connection=connection))

    async def defer(
        self, messages: Messages, delay: timedelta | None = None, **options: Any
    ) -> list[Settled]:
        act = super().defer
        return await self._act(
            messages, options.get("connection"), lambda m: act(m, delay, **options)
        )

    async def fail(
        self, messages: Messages, reason: str = "failed", **options: Any
    ) -> list[Settled]:
        act = super().fail
        return await self._act(
            messages, options.get("connection"), lambda m: act(m, reason, **options)
        )

    async def give_back(
        self, messages: Messages, delay: timedelta | None = None, *, connection: object = None
    ) -> list[Settled]:
        act = super().give_back
        return await self._act(messages, connection, lambda m: act(m, delay, connection=connection))

    async def extend(
        self, messages: Messages, length: timedelta | None = None, *, connection: object = None
    ) -> list[Settled]:
        (message,) = messages
        job = job_of(message)
        if job.acted or job.lost:
            return [_refused(job)]
        job.apart = job.apart or connection is not None
        asked = now()
        answers = await super().extend([message], length, connection=connection)
        if answers[0].lost:
            job.lost_flag = True
        elif connection is None:  # a transaction may yet roll back
            job.deadline = max(job.deadline, asked + (length or self._lease).total_seconds())
        return answers

    async def _act(
        self,
        messages: Messages,
        connection: object,
        verb: Callable[[Messages], Awaitable[list[Settled]]],
    ) -> list[Settled]:
        (message,) = messages
        job = job_of(message)
        if job.acted or job.lost:
            return [_refused(job)]
        job.apart = job.apart or connection is not None
        answers = await verb([message])
        _note(job, answers[0], connection)
        if job.acted:
            self._release(job)
        return answers


class ThreadHand(Settling):
    """The same from a handler's thread: the event loop does it, and the thread waits. Only on the
    caller's own connection the thread does it itself."""

    def __init__(self, core: Core, hand: Hand, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(core)
        self._hand = hand
        self._loop = loop

    def complete(self, messages: Messages, *, connection: object = None) -> list[Settled]:
        if connection is None:
            return self._wait(self._hand.complete(messages))
        return self._note_all(super().complete, messages, connection)

    def defer(
        self, messages: Messages, delay: timedelta | None = None, **options: Any
    ) -> list[Settled]:
        connection = options.pop("connection", None)
        if connection is None:
            return self._wait(self._hand.defer(messages, delay, **options))
        return self._note_all(super().defer, messages, connection, delay, **options)

    def fail(self, messages: Messages, reason: str = "failed", **options: Any) -> list[Settled]:
        connection = options.pop("connection", None)
        if connection is None:
            return self._wait(self._hand.fail(messages, reason, **options))
        return self._note_all(super().fail, messages, connection, reason, **options)

    def give_back(
        self, messages: Messages, delay: timedelta | None = None, *, connection: object = None
    ) -> list[Settled]:
        if connection is None:
            return self._wait(self._hand.give_back(messages, delay))
        return self._note_all(super().give_back, messages, connection, delay)

    def extend(
        self, messages: Messages, length: timedelta | None = None, *, connection: object = None
    ) -> list[Settled]:
        if connection is None:
            return self._wait(self._hand.extend(messages, length))
        (message,) = messages
        job = job_of(message)
        if job.acted or job.lost:
            return [_refused(job)]
        job.apart = True
        answers = super().extend([message], length, connection=connection)
        if answers[0].lost:
            job.lost_flag = True
        return answers

    def _note_all(
        self,
        verb: Callable[..., list[Settled]],
        messages: Messages,
        connection: object,
        *args: Any,
        **options: Any,
    ) -> list[Settled]:
        (message,) = messages
        job = job_of(message)
        if job.acted or job.lost:
            return [_refused(job)]
        job.apart = True
        answers = verb([message], *args, connection=connection, **options)
        _note(job, answers[0], connection)
        return answers

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def job_of(message: MessageFields) -> Job:
    return message if isinstance(message, Job) else message.job  # type: ignore[attr-defined]


def _note(job: Job, answer: Settled, connection: object) -> None:
    if answer.lost:
        job.lost_flag = True
    elif connection is None:
        job.acted = True
    else:
        job.in_transaction = True


def _refused(job: Job) -> Settled:
    return Settled(job.id, job.fence, "lost")
