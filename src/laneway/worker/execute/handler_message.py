"""The message as its handler gets it: its verbs are noted on the job; and whether it may still be
started."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar, cast

from laneway.client.aio.database import AsyncDatabase
from laneway.client.aio.message import AsyncMessage, AsyncSettleVerbs
from laneway.client.shared.flows import Parent
from laneway.client.shared.message_fields import MessageFields
from laneway.client.shared.settle_items import Error
from laneway.client.sync.database import Database
from laneway.client.sync.message import Message, SettleVerbs
from laneway.durations import Duration, to_seconds
from laneway.errors import LanewayError
from laneway.flow import NodeDraft, StagedNodes
from laneway.model import Settled
from laneway.plan import Row
from laneway.worker.clock import now
from laneway.worker.heartbeat.heartbeat import Heartbeat
from laneway.worker.job import Job
from laneway.worker.outcomes import TracebackRule, kept_traceback

T = TypeVar("T")


class HandlerMessage(AsyncMessage):
    """The message for an async handler."""

    __slots__ = ("job",)

    def __init__(self, job: Job, settling: AsyncSettleVerbs) -> None:
        super().__init__(job._row, job.claimed_at, job.until, settling)
        self.job = job

    def progress(self, share: float | None, note: str | None = None) -> None:
        super().progress(share, note)
        self.job.progress_noted = self._progress
        cast(HandlerSettling, self._settling).note_progress(self.job)

    @property
    def lost(self) -> bool:
        return self.job.lost

    @property
    def cancel_requested(self) -> bool:
        return self.job.cancel_requested

    @property
    def keep_result(self) -> timedelta | None:
        return self.job.keep_result

    @property
    def _waited(self) -> int | None:
        return self.job._waited


class ThreadHandlerMessage(Message):
    """The message for a handler in a thread."""

    __slots__ = ("job",)

    def __init__(self, job: Job, settling: SettleVerbs) -> None:
        super().__init__(job._row, job.claimed_at, job.until, settling)
        self.job = job

    def progress(self, share: float | None, note: str | None = None) -> None:
        super().progress(share, note)
        self.job.progress_noted = self._progress
        cast(ThreadHandlerSettling, self._settling).note_progress(self.job)

    @property
    def lost(self) -> bool:
        return self.job.lost

    @property
    def cancel_requested(self) -> bool:
        return self.job.cancel_requested

    @property
    def keep_result(self) -> timedelta | None:
        return self.job.keep_result

    @property
    def _waited(self) -> int | None:
        return self.job._waited


Messages = Iterable[MessageFields]


class HandlerSettling(AsyncSettleVerbs):
    """Refuses verbs on a settled or lost message without asking the database, and notes on the job
    what was done."""

    def __init__(
        self,
        database: AsyncDatabase,
        release: Callable[[Job], None],
        tracebacks: TracebackRule,
        note_progress: Callable[[Job], None],
    ) -> None:
        super().__init__(database)
        self._release = release
        self.note_progress = note_progress
        self.tracebacks = tracebacks
        self._lease = database.options.lease

    def _traceback(self, error: Error) -> str | None:
        return kept_traceback(self.tracebacks, error)

    async def complete(
        self,
        messages: Messages,
        *,
        results: Sequence[object] | None = None,
        connection: object = None,
    ) -> list[Settled]:
        act = super().complete
        return await self._act(
            messages, connection, lambda m: act(m, results=results, connection=connection)
        )

    async def defer(
        self, messages: Messages, delay: Duration | None = None, **options: Any
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
        self, messages: Messages, delay: Duration | None = None, *, connection: object = None
    ) -> list[Settled]:
        act = super().give_back
        return await self._act(messages, connection, lambda m: act(m, delay, connection=connection))

    async def extend(
        self, messages: Messages, length: Duration | None = None, *, connection: object = None
    ) -> list[Settled]:
        (message,) = messages
        job = job_of(message)
        if job.settled or job.lost:
            return [_refused(job)]
        job.maybe_locked = job.maybe_locked or connection is not None
        asked = now()
        results = await super().extend([message], length, connection=connection)
        if results[0].lost:
            job.lost = True
        elif connection is None:  # a transaction may yet roll back
            job.deadline = max(job.deadline, asked + to_seconds(length or self._lease))
        return results

    async def _act(
        self,
        messages: Messages,
        connection: object,
        verb: Callable[[Messages], Awaitable[list[Settled]]],
    ) -> list[Settled]:
        (message,) = messages
        job = job_of(message)
        if job.settled or job.lost:
            return [_refused(job)]
        job.maybe_locked = job.maybe_locked or connection is not None
        results = await verb([message])
        _note(job, results[0], connection)
        if job.settled:
            self._release(job)
        return results


class ThreadHandlerSettling(SettleVerbs):
    """The same from a handler's thread: the event loop does it while the thread waits. Only on the
    handler's own connection the thread does it itself."""

    def __init__(
        self, database: Database, settling: HandlerSettling, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(database)
        self._settling = settling
        self._loop = loop

    def note_progress(self, job: Job) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._loop.call_soon_threadsafe(self._settling.note_progress, job)

    def _traceback(self, error: Error) -> str | None:
        return kept_traceback(self._settling.tracebacks, error)

    def complete(
        self,
        messages: Messages,
        *,
        results: Sequence[object] | None = None,
        connection: object = None,
    ) -> list[Settled]:
        if connection is None:
            return self._wait(self._settling.complete(messages, results=results))
        return self._note_all(super().complete, messages, connection, results=results)

    def defer(
        self, messages: Messages, delay: Duration | None = None, **options: Any
    ) -> list[Settled]:
        connection = options.pop("connection", None)
        if connection is None:
            return self._wait(self._settling.defer(messages, delay, **options))
        return self._note_all(super().defer, messages, connection, delay, **options)

    def fail(self, messages: Messages, reason: str = "failed", **options: Any) -> list[Settled]:
        connection = options.pop("connection", None)
        if connection is None:
            return self._wait(self._settling.fail(messages, reason, **options))
        return self._note_all(super().fail, messages, connection, reason, **options)

    def give_back(
        self, messages: Messages, delay: Duration | None = None, *, connection: object = None
    ) -> list[Settled]:
        if connection is None:
            return self._wait(self._settling.give_back(messages, delay))
        return self._note_all(super().give_back, messages, connection, delay)

    def extend(
        self, messages: Messages, length: Duration | None = None, *, connection: object = None
    ) -> list[Settled]:
        if connection is None:
            return self._wait(self._settling.extend(messages, length))
        (message,) = messages
        job = job_of(message)
        if job.settled or job.lost:
            return [_refused(job)]
        job.maybe_locked = True
        results = super().extend([message], length, connection=connection)
        if results[0].lost:
            job.lost = True
        return results

    def _stage_nodes(
        self, lease: Row, nodes: Sequence[NodeDraft], *, connection: object = None
    ) -> StagedNodes:
        if connection is None:
            return self._wait(self._settling._stage_nodes(lease, nodes))
        return super()._stage_nodes(lease, nodes, connection=connection)

    def _parents(self, message_id: int) -> Sequence[Parent]:
        return self._wait(self._settling._parents(message_id))

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
        if job.settled or job.lost:
            return [_refused(job)]
        job.maybe_locked = True
        results = verb([message], *args, connection=connection, **options)
        _note(job, results[0], connection)
        return results

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def job_of(message: MessageFields) -> Job:
    return message if isinstance(message, Job) else message.job  # type: ignore[attr-defined]


def _note(job: Job, result: Settled, connection: object) -> None:
    job.own_result = result
    if result.lost:
        job.lost = True
    elif connection is None:
        job.settled = True
    else:
        job.in_transaction = True


def _refused(job: Job) -> Settled:
    return Settled(job.id, job.fence, "lost")


class TooLate(Exception):
    """The lease expired while the message waited for a process, a transaction or a batch: its
    handler does not begin."""


class LeaseCheck:
    """Whether a message may still be started, once its lease has expired by our own clock; and for
    how long its lease is extended once it has started."""

    def __init__(self, heartbeat: Heartbeat, settling: HandlerSettling) -> None:
        self._heartbeat = heartbeat
        self._settling = settling

    def limit(self, job: Job, seconds: float) -> None:
        """Its handler begins: one that cannot even be timed out loses its lease after that."""
        self._heartbeat.bound(job, now() + seconds)

    async def regain(self, job: Job) -> bool:
        """Whether the lease is ours though ``job.deadline`` has passed: the heartbeat may have
        extended it, and if not, the database is asked to.

        To be called after every wait before a handler begins: the process may have been stopped
        meanwhile.
        """
        self._heartbeat.refresh(job)
        if job.deadline > now():
            return True
        with suppress(LanewayError):
            results = await self._settling.extend([job])
            return not results[0].lost
        return False
