"""Dead letters, seen by an operator, and bulk operations on them."""

from asyncio import sleep
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from laneway.client.shared.checks import (
    check_choice,
    check_limit,
    check_number,
    check_storable,
    checked_filter,
    selection,
)
from laneway.client.shared.operate import CHUNK, preview, start
from laneway.durations import Duration, check_duration
from laneway.errors import DatabaseFailed, InvalidOption
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.names import check_name
from laneway.operations import BulkAction, Operation, Preview
from laneway.spelling import explains_mistakes

from .database import AsyncDatabase

_MOST_ATTEMPTS = 2**31 - 1
_MOST_COUNTED = 2**31 - 2


@explains_mistakes
class AsyncDeadLetters:
    """Messages that were given up. A filter that is left out matches all; ``until`` is exclusive.

    >>> await queue.dead_letters.redrive(reason="no such customer")
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def list(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: DeadLetter | DeadLetterPosition | None = None,
    ) -> DeadLetterPage:
        """Up to ``limit`` dead letters, newest first; the next page comes ``after=page.next``, None
        at the end. With filters other than queue and times, a page looks at the next 10,000 at
        most (4,000 on SQLite, 3,000 on MySQL), so it can hold fewer than ``limit`` and not be the
        last one.

        >>> page = await queue.dead_letters.list(queue="emails", limit=50)
        >>> rest = await queue.dead_letters.list(queue="emails", after=page.next)
        """
        wanted = checked_filter(
            DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        )
        if after is not None and not isinstance(after, DeadLetter | DeadLetterPosition):
            raise InvalidOption(f"after must be page.next, not {type(after).__name__}")
        plan = self._database.engine.dead_letters.dead_letters(wanted, check_limit(limit), after)
        return await self._database.run(plan)

    async def groups(self, *, queue: str | None = None, limit: int = 100) -> DeadLetterGroups:
        """Dead letters by kind and error, the largest groups first. Errors are the same that differ
        only in numbers and ids. Looks at the newest 10,000 (4,000 on SQLite, 3,000 on MySQL).

        >>> for group in (await queue.dead_letters.groups(queue="emails")).groups: ...
        """
        wanted = None if queue is None else check_name("queue", queue)
        plan = self._database.engine.dead_letters.dead_letter_groups(wanted, check_limit(limit))
        return await self._database.run(plan)

    async def count(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10_000,
    ) -> DeadLetterCount:
        """How many dead letters a redrive with these arguments would take, up to ``limit``. With
        filters other than queue and times it looks at the newest 10,000 (4,000 on SQLite, 3,000 on
        MySQL); ``or_more`` of the answer says whether there may be others.

        >>> await queue.dead_letters.count(queue="emails", reason="max_attempts")
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        wanted = selection(ids, by)
        limit = check_number("limit", limit, 1, _MOST_COUNTED)
        return await self._database.run(
            self._database.engine.dead_letters.count_dead_letters(wanted, limit)
        )

    async def redrive(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        max_attempts: int | None = None,
        delay: Duration = 0,
    ) -> int:
        """Puts dead letters back into their queues with a new number of attempts; returns how many.

        By ids or by filters. They keep their id and first publish time. Works in batches, each in a
        transaction of its own: if it is interrupted, call it again.

        >>> await queue.dead_letters.redrive(queue="emails", since=yesterday, max_attempts=3)
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        wanted = selection(ids, by)
        if max_attempts is not None:
            max_attempts = check_number("max_attempts", max_attempts, 1, _MOST_ATTEMPTS)
        plan = self._database.engine.dead_letters.redrive(
            wanted, max_attempts, check_duration("delay", delay)
        )
        return await self._database.run(plan)

    async def discard(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """Deletes dead letters for good and returns how many; otherwise like redrive.

        >>> await queue.dead_letters.discard([letter.id])
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        return await self._database.run(
            self._database.engine.dead_letters.discard(selection(ids, by))
        )


# Bulk operations on dead letters, seen by an operator.

_LAST_ID = 2**63 - 1
_POLL = 0.2


@explains_mistakes
class AsyncOperations:
    """Redrives and discards of many dead letters: previewed, done in the background by upkeep in
    parts of 1,000, each part a transaction; they can be cancelled, and survive a crash.

    >>> seen = await queue.operations.preview(queue="emails", reason="max_attempts")
    >>> await queue.operations.start("redrive", queue="emails", reason="max_attempts",
    ...     expected=seen.count)
    """

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def preview(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Preview:
        """How many dead letters match, and the newest five of them. Counts up to 100,000; with
        filters other than queue and times it looks at the newest 10,000 (4,000 on SQLite, 3,000 on
        MySQL). ``or_more``: there may be others, and an operation takes them too."""
        wanted = _filter(DeadLetterFilter(queue, channel, kind, reason, since, until, error_type))
        return await self._database.run(preview(self._database.engine, wanted))

    async def start(
        self,
        action: BulkAction,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        expected: int | None = None,
        allowed: int = 0,
        max_attempts: int | None = None,
        delay: Duration = 0,
        actor: str = "",
    ) -> Operation:
        """Starts an operation on the dead letters that match now; later ones are not taken.

        Raises CountChanged if their number differs from ``expected`` by more than ``allowed``.
        Upkeep of any client does the work; ``run`` helps and waits for the end.
        """
        wanted = _filter(DeadLetterFilter(queue, channel, kind, reason, since, until, error_type))
        if check_choice("action", action, ("redrive", "discard")) == "discard" and (
            max_attempts is not None or delay
        ):
            raise InvalidOption("max_attempts and delay go with redrive")
        options: dict[str, Any] = {}
        if max_attempts is not None:
            options["max_attempts"] = check_number("max_attempts", max_attempts, 1, _MOST_ATTEMPTS)
        if delay:
            options["delay"] = check_duration("delay", delay).total_seconds()
        if expected is not None:
            expected = check_number("expected", expected, 0, _LAST_ID)
        allowed = check_number("allowed", allowed, 0, _LAST_ID)
        who = check_storable("actor", actor, 255)
        plan = start(self._database.engine, action, wanted, expected, allowed, options, who)
        return await self._database.run(plan, atomic=True)

    async def list(self, *, limit: int = 100) -> Sequence[Operation]:
        """Operations, the newest first."""
        return await self._database.run(
            self._database.engine.operations.operations(None, check_limit(limit))
        )

    async def get(self, operation_id: int) -> Operation:
        """One operation as it stands."""
        found = await self._database.run(
            self._database.engine.operations.operations(_id(operation_id), 1)
        )
        return _there(found[0] if found else None, operation_id)

    async def cancel(self, operation_id: int) -> Operation:
        """Stops an operation; what it has done stays done."""
        plan = self._database.engine.operations.end_operation(_id(operation_id), "cancelled", None)
        return _there(await self._database.run(plan, atomic=True), operation_id)

    async def run(
        self, operation_id: int, progress: Callable[[Operation], None] | None = None
    ) -> Operation:
        """Works on an operation until it has ended, beside others that do; ``progress`` is told
        after each part."""
        operation = await self.get(operation_id)
        while operation.state == "running":
            if await self.step(operation_id) is None:
                await sleep(_POLL)  # somebody else is at it
            operation = await self.get(operation_id)
            if progress is not None:
                progress(operation)
        return operation

    async def step(self, operation_id: int | None = None) -> Operation | None:
        """One part of an operation, of the first one that runs if none is named; None if there was
        nothing to do. What the database refuses ends the operation as failed."""
        try:
            plan = self._database.engine.operations.step_operation(operation_id, CHUNK)
            return await self._database.run(plan, atomic=True)
        except DatabaseFailed as error:
            failed = operation_id or await self._first_running()
            if failed is None:
                raise
            text = check_storable("error", str(error))
            plan = self._database.engine.operations.end_operation(failed, "failed", text)
            return await self._database.run(plan, atomic=True)

    async def _first_running(self) -> int | None:
        running = [one.id for one in await self.list(limit=1000) if one.state == "running"]
        return min(running, default=None)


def _filter(by: DeadLetterFilter) -> DeadLetterFilter:
    wanted = selection(None, by)
    assert isinstance(wanted, DeadLetterFilter)
    return wanted


def _id(operation_id: int) -> int:
    return check_number("an operation's id", operation_id, 1, _LAST_ID)


def _there(found: Operation | None, operation_id: int) -> Operation:
    if found is None:
        raise InvalidOption(f"there is no operation {operation_id}: see queue.operations.list()")
    return found
