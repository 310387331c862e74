"""Bulk operations on dead letters, for an operator."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from laneway.durations import Duration
from laneway.errors import InvalidOption
from laneway.operations import BulkAction, Operation, Preview

from .base import Base
from .verbs import Right, refuse, verb

Progress = Callable[[Operation], None]


class BulkActions(Base):
    """In a scope an operation is of one channel, which has to be named."""

    @verb(Right.VIEW, "checked")
    def preview(
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
        """How many dead letters a bulk operation would take, and the first five of them."""
        self._check_bulk("preview", channel)
        by: dict[str, Any] = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        by |= {"since": since, "until": until, "error_type": error_type}
        seen = self._queue.operations.preview(**by)
        return Preview(seen.count, seen.or_more, self._listed(seen.sample))

    @verb(Right.REDRIVE, "checked", acts=True)
    def start_redrive(
        self,
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
    ) -> Operation:
        """Starts a redrive in the background; ``expected`` is the count of the preview."""
        self._check_bulk("start_redrive", channel)
        by: dict[str, Any] = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        by |= {"since": since, "until": until, "error_type": error_type}
        by |= {"max_attempts": max_attempts, "delay": delay}
        return self._start("redrive", by, expected, allowed)

    @verb(Right.DISCARD, "checked", acts=True)
    def start_discard(
        self,
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
    ) -> Operation:
        """Starts a discard in the background; ``expected`` is the count of the preview."""
        self._check_bulk("start_discard", channel)
        by: dict[str, Any] = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        by |= {"since": since, "until": until, "error_type": error_type}
        return self._start("discard", by, expected, allowed)

    @verb(Right.VIEW, "filtered")
    def operations(self, *, limit: int = 100) -> list[Operation]:
        """Bulk operations, the newest first."""
        return [one for one in self._queue.operations.list(limit=limit) if self._sees(one)]

    @verb(Right.VIEW, "filtered")
    def operation(self, operation_id: int) -> Operation:
        """One bulk operation as it stands."""
        return self._operation(operation_id)

    @verb(Right.REDRIVE, "filtered", acts=True)
    def cancel_operation(self, operation_id: int) -> Operation:
        """Stops a bulk operation; what it has done stays done."""
        self._operation(operation_id)
        acting = self._acting("cancel_operation", {"operation": operation_id})
        return acting.operations.cancel(operation_id)

    @verb(Right.REDRIVE, "filtered")
    def run_operation(self, operation_id: int, progress: Progress | None = None) -> Operation:
        """Works on a bulk operation until it has ended, as upkeep does; its start is in the
        audit."""
        self._operation(operation_id)
        return self._queue.operations.run(operation_id, progress)

    def _start(
        self, action: BulkAction, by: dict[str, Any], expected: int | None, allowed: int
    ) -> Operation:
        def count(operation: Operation) -> int | None:
            return operation.total or None

        acting = self._acting(f"start_{action}", {k: v for k, v in by.items() if v}, count)
        name = self.principal.name
        return acting.operations.start(action, **by, expected=expected, allowed=allowed, actor=name)

    def _check_bulk(self, verb: str, channel: str | None) -> None:
        if channel is not None:
            self._check_channel(verb, channel)
        elif self.principal.scoped:
            refuse(self.principal, verb, "name a channel: some are hidden from you")

    def _operation(self, operation_id: int) -> Operation:
        found = self._queue.operations.get(operation_id)
        if not self._sees(found):
            raise InvalidOption(f"there is no operation {operation_id} that you see")
        return found

    def _sees(self, operation: Operation) -> bool:
        # No prefix is empty, so an operation on all channels is in no scope.
        return self.principal.sees(operation.wanted.get("channel", ""))
