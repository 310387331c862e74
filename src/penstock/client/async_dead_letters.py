"""Dead letters, seen by an operator."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from penstock.errors import InvalidOption
from penstock.model import DeadLetter, DeadLetterFilter

from .async_core import AsyncCore
from .checks import check_length, check_limit, check_number
from .selection import checked_filter, selection

_MOST_ATTEMPTS = 2**31 - 1


class AsyncDeadLetters:
    """What was given up. A filter that is left out matches all; ``until`` is not included.

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
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: DeadLetter | None = None,
    ) -> Sequence[DeadLetter]:
        """Up to ``limit`` dead letters, oldest first; the next page comes ``after`` the last one.

        >>> page = await queue.dead_letters.list(queue="emails", limit=50)
        >>> rest = await queue.dead_letters.list(queue="emails", after=page[-1])
        """
        wanted = checked_filter(DeadLetterFilter(queue, channel, kind, reason, since, until))
        if after is not None and not isinstance(after, DeadLetter):
            raise InvalidOption(f"after must be a DeadLetter, not {type(after).__name__}")
        plan = self._core.engine.dead_letters(wanted, check_limit(limit), after)
        return await self._core.run(plan)

    async def count(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        most: int = 10_000,
    ) -> int:
        """How many a redrive with the same words would take; stops counting at ``most``.

        >>> await queue.dead_letters.count(queue="emails", reason="max_attempts")
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until)
        wanted = selection(ids, by)
        most = check_number("most", most, 1, _MOST_ATTEMPTS)
        return await self._core.run(self._core.engine.count_dead_letters(wanted, most))

    async def redrive(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        max_attempts: int | None = None,
        delay: timedelta = timedelta(0),
    ) -> int:
        """Lets dead letters wait again with a new budget of attempts, and answers how many.

        By ids or by filters; their id and first publish time stay. Works in batches, each committed
        for itself: if it breaks off, call it again.

        >>> await queue.dead_letters.redrive(queue="emails", since=yesterday, max_attempts=3)
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until)
        wanted = selection(ids, by)
        if max_attempts is not None:
            max_attempts = check_number("max_attempts", max_attempts, 1, _MOST_ATTEMPTS)
        delay = check_length("delay", delay)
        return await self._core.run(self._core.engine.redrive(wanted, max_attempts, delay))

    async def discard(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """Ends dead letters for good, and answers how many; otherwise like redrive.

        >>> await queue.dead_letters.discard([letter.id])
        """
        by = DeadLetterFilter(queue, channel, kind, reason, since, until)
        return await self._core.run(self._core.engine.discard(selection(ids, by)))
