"""Bulk operations on dead letters, seen by an operator."""

from asyncio import sleep
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from laneway.client.shared.bulk import CHUNK, preview, start
from laneway.client.shared.checks import (
    check_choice,
    check_limit,
    check_number,
    check_storable,
    selection,
)
from laneway.durations import Duration, check_duration
from laneway.errors import DatabaseFailed, InvalidOption
from laneway.model import DeadLetterFilter
from laneway.operations import BulkAction, Operation, Preview

from .core import AsyncCore

_LAST_ID = 2**63 - 1
_MOST_ATTEMPTS = 2**31 - 1
_POLL = 0.2


class AsyncOperations:
    """Redrives and discards of many dead letters: previewed, done in the background by upkeep in
    parts of 1,000, each part a transaction; they can be cancelled, and survive a crash.

    >>> seen = await queue.operations.preview(queue="emails", reason="max_attempts")
    >>> await queue.operations.start("redrive", queue="emails", reason="max_attempts",
    ...     expected=seen.count)
    """

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

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
        filters other than queue and times it looks at the newest 10,000. ``or_more``: there may be
        others, and an operation takes them too."""
        wanted = _filter(DeadLetterFilter(queue, channel, kind, reason, since, until, error_type))
        return await self._core.run(preview(self._core.engine, wanted))

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
        plan = start(self._core.engine, action, wanted, expected, allowed, options, who)
        return await self._core.run(plan, atomic=True)

    async def list(self, *, limit: int = 100) -> Sequence[Operation]:
        """Operations, the newest first."""
        return await self._core.run(self._core.engine.operations(None, check_limit(limit)))

    async def get(self, operation_id: int) -> Operation:
        """One operation as it stands."""
        found = await self._core.run(self._core.engine.operations(_id(operation_id), 1))
        return _there(found[0] if found else None, operation_id)

    async def cancel(self, operation_id: int) -> Operation:
        """Stops an operation; what it has done stays done."""
        plan = self._core.engine.end_operation(_id(operation_id), "cancelled", None)
        return _there(await self._core.run(plan, atomic=True), operation_id)

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
            plan = self._core.engine.step_operation(operation_id, CHUNK)
            return await self._core.run(plan, atomic=True)
        except DatabaseFailed as error:
            failed = operation_id or await self._first_running()
            if failed is None:
                raise
            text = check_storable("error", str(error))
            plan = self._core.engine.end_operation(failed, "failed", text)
            return await self._core.run(plan, atomic=True)

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
