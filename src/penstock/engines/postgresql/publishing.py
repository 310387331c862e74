"""publish: columns instead of rows, so that a thousand messages are one cheap statement."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from penstock.contract import BATCH
from penstock.model import Draft, Published
from penstock.plan import Plan

from .base import Base

# Where one element holds for the whole batch; see publish_v1.
_ONE_FOR_ALL = frozenset(
    Draft._fields.index(name)
    for name in (
        "queue",
        "channel",
        "kind",
        "content_type",
        "priority",
        "delay",
        "expires_in",
        "max_attempts",
    )
)


_TAKEN = frozenset(("published", "existing"))


class Publishing(Base):
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        answers: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            rows = yield self._say_now("publish", *columns(drafts[start : start + BATCH]))
            answers += _answers(*rows[0])
        return answers


def _answers(ids: Sequence[int], statuses: Sequence[str] | None) -> Iterator[Published]:
    if statuses is None:
        return map(Published._make, zip(ids, repeat("published")))
    return (
        Published(id if status in _TAKEN else None, status)  # type: ignore[arg-type]
        for id, status in zip(ids, statuses, strict=True)
    )


def columns(drafts: Sequence[Draft]) -> list[list[Any] | None]:
    """None instead of an empty list, which costs drivers more and has no type of its own."""
    if len(drafts) == 1:
        return [None if value is None else [value] for value in drafts[0]]
    return [_column(number, values) for number, values in enumerate(zip(*drafts, strict=True))]


def _column(number: int, values: tuple[Any, ...]) -> list[Any] | None:
    first = values[0]
    if number == 0 or (first is not None and number not in _ONE_FOR_ALL):
        return list(values)
    if values.count(first) < len(values):
        return list(values)
    return None if first is None else [first]
