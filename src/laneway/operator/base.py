"""What every part of Operator shares: the client, the principal, and the channel scope."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from laneway.client.shared.checks import check_ids, check_limit
from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption
from laneway.inspection import MessageInfo
from laneway.model import DeadLetter
from laneway.operations import AuditNote, Source

from .verbs import Principal, refuse

T = TypeVar("T")

PAGE = 1000
LOOKED = 10_000
"""How many rows a list looks at for a principal that sees only some channels."""


class Base:
    """A client, somebody who uses it, and from where."""

    def __init__(self, queue: Queue, principal: Principal, source: Source) -> None:
        self._queue = queue
        self.principal = principal
        self.source = source

    def _acting(
        self,
        action: str,
        target: dict[str, Any],
        count: Callable[[Any], int | None] = lambda answer: 1,
    ) -> Queue:
        """The client for one verb that changes something: what it does and its row in the audit are
        one transaction."""
        named = {name: _plain(value) for name, value in target.items() if value is not None}
        note = AuditNote(self.principal.name, self.source, action, named)
        return self._queue.audited(note, count)

    def _target(self, queue: str | None) -> str:
        return self._queue.name if queue is None else queue

    def _check_channel(self, verb: str, channel: str) -> None:
        if not self.principal.sees(channel):
            refuse(self.principal, verb, f"channel {channel!r} is hidden from you")

    def _hidden(self, channel: str | None) -> bool:
        """Whether a list of one channel is empty without looking."""
        return channel is not None and not self.principal.sees(channel)

    def _seen(
        self, page: Callable[[T | None, int], Sequence[T]], channel: Callable[[T], str], limit: int
    ) -> list[T]:
        """The first ``limit`` that are in the scope, among the first LOOKED there are."""
        limit = check_limit(limit)
        if not self.principal.scoped:
            return list(page(None, limit))
        found = (row for row in _rows(page) if self.principal.sees(channel(row)))
        return [row for row, _ in zip(found, range(limit), strict=False)]

    def _ids(self, ids: Iterable[int]) -> list[int]:
        """Those of the messages that are in the scope; the others are as if they were not there.
        A message never changes its channel, so this cannot be out of date."""
        wanted = check_ids(ids)
        if not self.principal.scoped:
            return wanted
        if len(wanted) > PAGE:
            raise InvalidOption(f"{len(wanted)} ids: pass at most {PAGE} at once")
        return [id for id in wanted if self._visible(id) is not None]

    @staticmethod
    def _listed(letters: Sequence[DeadLetter]) -> Sequence[DeadLetter]:
        """Payloads are never in lists: there is a verb that reads one, with a right of its own."""
        return [replace(letter, payload=b"") for letter in letters]

    def _visible(self, message_id: int) -> MessageInfo | None:
        info = self._queue.message(message_id)
        return info if info is not None and self.principal.sees(info.channel) else None


def _rows(page: Callable[[T | None, int], Sequence[T]]) -> Iterator[T]:
    last: T | None = None
    for _ in range(0, LOOKED, PAGE):
        rows = page(last, PAGE)
        yield from rows
        if len(rows) < PAGE:
            return
        last = rows[-1]


def _plain(value: object) -> object:
    """For JSON: times as text, durations as seconds; a policy's KEEP is left out by the caller."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else value
