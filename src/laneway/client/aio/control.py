"""What operators control: pauses of queues and kinds, what runs now; and the audit."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self, TypeVar

from laneway.client.shared.checks import (
    check_ids,
    check_limit,
    check_number,
    check_storable,
    checked_pause,
)
from laneway.client.shared.operate import noted
from laneway.durations import Duration
from laneway.model import MadeDue
from laneway.names import check_kind, check_name
from laneway.operations import AuditEntry, AuditNote, Pause
from laneway.plan import Plan
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase
from .dead_letters import AsyncOperations

# A client whose verbs write into the audit what they did, in the same transaction.

T = TypeVar("T")
Item = TypeVar("Item")


class AsyncAuditedDatabase(AsyncDatabase):
    """The same engine and connections as ``database``; every plan ends with a row of the audit, and
    the two are one transaction."""

    def __init__(
        self, database: AsyncDatabase, note: AuditNote, count: Callable[[Any], int | None]
    ) -> None:
        self.engine = database.engine
        self.options = database.options
        self._database = database
        self._note = note
        self._count = count

    async def run(self, plan: Plan[T], connection: object = None, *, atomic: bool = False) -> T:
        both = noted(self.engine, plan, self._note, self._count)
        return await self._database.run(both, connection, atomic=True)

    async def run_items(
        self,
        verb: Callable[[Sequence[Item]], Plan[list[T]]],
        items: Sequence[Item],
        connection: object = None,
        *,
        waits: bool = False,
    ) -> list[T]:
        return await self.run(verb(items), connection)


_LAST_ID = 2**63 - 1


@explains_mistakes
class AsyncControlVerbs:
    """A part of the client: pauses and the audit."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def pause(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        duration: Duration | None = None,
        reason: str = "",
        actor: str = "",
    ) -> Pause:
        """Starts nothing more of the queue (the client's own by default), or of one ``kind`` of it,
        for ``duration`` or until it is resumed. What runs goes on, and publishing still works.

        Messages of a paused kind are put back when their turn comes, and others pass them.

        >>> await queue.pause(kind="email", duration=timedelta(hours=1), reason="relay is down")
        """
        plan = self._database.engine.queues.pause_queue(
            self._queue_named(queue),
            None if kind is None else check_kind(kind),
            checked_pause(duration),
            check_storable("actor", actor, 255),
            check_storable("reason", reason),
        )
        return await self._database.run(plan)

    async def resume(self, *, queue: str | None = None, kind: str | None = None) -> bool:
        """Ends the pause of the queue, or of one ``kind`` of it; returns whether there was one. A
        resumed kind starts again within the length of its pause, five minutes at most.

        >>> await queue.resume(kind="email")
        """
        target = self._queue_named(queue)
        kind = None if kind is None else check_kind(kind)
        return await self._database.run(self._database.engine.queues.resume_queue(target, kind))

    async def pauses(self, *, queue: str | None = None) -> Sequence[Pause]:
        """The queues and kinds that are paused now, of all queues if none is named.

        >>> [(pause.queue, pause.kind, pause.until) for pause in await queue.pauses()]
        """
        if queue is not None:
            queue = check_name("queue", queue)
        return await self._database.run(self._database.engine.queues.pauses(queue))

    def _queue_named(self, queue: str | None) -> str:
        return self._database.options.queue if queue is None else check_name("queue", queue)

    @property
    def operations(self) -> AsyncOperations:
        """Redrives and discards of many dead letters, in the background."""
        return AsyncOperations(self._database)

    async def run_now(self, ids: Iterable[int]) -> list[MadeDue]:
        """Makes messages that are scheduled for later due now, deferred ones too; the limits and
        the order of their channels hold as ever.

        >>> await queue.run_now([published.id])
        """
        wanted = check_ids(ids)
        if not wanted:
            return []
        return await self._database.run(self._database.engine.messages.run_now(wanted))

    async def audit(self, *, limit: int = 100, before: int | None = None) -> Sequence[AuditEntry]:
        """What operators did, the newest first; the next page comes ``before`` the last one's id.

        >>> [entry.actor for entry in await queue.audit(limit=20)]
        """
        if before is not None:
            before = check_number("before", before, 1, _LAST_ID)
        return await self._database.run(
            self._database.engine.operations.audit(check_limit(limit), before)
        )

    def audited(
        self, note: AuditNote, count: Callable[[Any], int | None] = lambda answer: None
    ) -> Self:
        """The same client, whose next verb writes ``note`` into the audit in its own transaction;
        ``count`` says from the verb's result how many it changed. ``laneway.operator`` uses it."""
        client = copy(self)
        client._database = AsyncAuditedDatabase(self._database, note, count)
        return client
