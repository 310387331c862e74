"""Dead letters, seen by an operator."""

from collections.abc import Iterable
from datetime import datetime

from laneway.client.shared.checks import check_limit, check_number, checked_filter, selection
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.names import check_name

from .core import AsyncCore

_MOST_ATTEMPTS = 2**31 - 1
_MOST_COUNTED = 2**31 - 2


class AsyncDeadLetters:
    """Messages that were given up. A filter that is left out matches all; ``until`` is exclusive.

    >>> await queue.dead_letters.redrive(reason="no such customer")
    """

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

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
        most, so it can hold fewer than ``limit`` and not be the last one.

        >>> page = await queue.dead_letters.list(queue="emails", limit=50)
        >>> rest = await queue.dead_letters.list(queue="emails", after=page.next)
        """
        wanted = checked_filter(
            DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        )
        if after is not None and not isinstance(after, DeadLetter | DeadLetterPosition):
            raise InvalidOption(f"after must be page.next, not {type(after).__name__}")
        plan = self._core.engine.dead_letters(wanted, check_limit(limit), after)
        return await self._core.run(plan)

    async def groups(self, *, queue: str | None = None, limit: int = 100) -> DeadLetterGroups:
        """Dead letters by kind and error, the largest groups first. Errors are the same that differ
        only in numbers and ids. Looks at the newest 10,000.

        >>> for group in (await queue.dead_letters.groups(queue="emails")).groups: ...
        """
        wanted = None if queue is None else check_name("queue", queue)
        plan = self._core.engine.dead_letter_groups(wanted, check_limit(limit))
        return await self._core.run(plan)

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
        filters other than queue and times it looks at the newest 10,000 (3,000 on MySQL);
        ``or_more`` of the answer says whether there may be others.

        >>> await queue.dead_letters.count(queue="emails", reason="max_attempts")
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until, error_type)
        wanted = selection(ids, by)
        limit = check_number("limit", limit, 1, _MOST_COUNTED)
        return await self._core.run(self._core.engine.count_dead_letters(wanted, limit))

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
        plan = self._core.engine.redrive(wanted, max_attempts, check_duration("delay", delay))
        return await self._core.run(plan)

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
        return await self._core.run(self._core.engine.discard(selection(ids, by)))
