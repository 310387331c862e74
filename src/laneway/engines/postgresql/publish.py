"""publish: arrays of columns instead of rows, so that a batch is one cheap statement.

Key modes: what publish finds in use is replaced by a second statement.
Topics: the database makes the copies, in one round trip.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from laneway.contract import BATCH
from laneway.engines.publish import has_modes, publish_modes
from laneway.model import Draft, Published
from laneway.plan import Plan
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy, copies

from .base import PostgresqlBase

# Columns in which one element can stand for the whole batch; see publish_v1.
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


class PostgresqlPublish(PostgresqlBase):
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace))
        published: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            published += yield from self._publish(drafts[start : start + BATCH])
        return published

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        rows = yield self._statement_now("publish", *columns(drafts))
        return list(_answers(*rows[0]))

    def _replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        """A statement of its own: of one message each decides for itself, so that they need no
        transaction around both."""
        *values, modes = zip(*drafts, strict=True)
        bounds = [mode.debounce_for if mode else None for mode in modes]
        rows = yield self._statement_now("replace", *map(list, values), bounds)
        return [None if status == "free" else Published(id, status) for id, status in rows]


def _answers(ids: Sequence[int], statuses: Sequence[str] | None) -> Iterator[Published]:
    if statuses is None:
        return map(Published._make, zip(ids, repeat("published")))
    return (
        Published(id if status in _TAKEN else None, status)  # type: ignore[arg-type]
        for id, status in zip(ids, statuses, strict=True)
    )


def columns(drafts: Sequence[Draft]) -> list[list[Any] | None]:
    """Without the modes. None instead of an empty list: drivers handle it faster and need no type
    for it."""
    if len(drafts) == 1:
        return [None if value is None else [value] for value in drafts[0][:-1]]
    values = list(zip(*drafts, strict=True))[:-1]
    return [_column(number, column) for number, column in enumerate(values)]


def _column(number: int, values: tuple[Any, ...]) -> list[Any] | None:
    first = values[0]
    if number == 0 or (first is not None and number not in _ONE_FOR_ALL):
        return list(values)
    if values.count(first) < len(values):
        return list(values)
    return None if first is None else [first]


_QUEUE = Draft._fields.index("queue")


class PostgresqlTopics(PostgresqlPublish):
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._statement("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._statement("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._statement("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        if has_modes(drafts):
            return (yield from self._publish_copies(topic, drafts))
        copied: list[list[TopicCopy]] = [[] for _ in drafts]
        for start in range(0, len(drafts), TOPIC_BATCH):
            values = columns(drafts[start : start + TOPIC_BATCH])
            del values[_QUEUE]
            rows = yield self._statement_now("publish_topic", topic, *values)
            for ordinal, queue, id, status in rows:
                taken = status in ("published", "existing")
                copied[start + ordinal - 1].append(TopicCopy(queue, id if taken else None, status))
        return copied

    def _publish_copies(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        rows = yield self._statement("subscribers", topic)
        subscribers = [Subscription(topic, *row) for row in rows]
        rounds = [copies(draft, subscribers) for draft in drafts]
        published = iter((yield from self.publish([copy for part in rounds for copy in part])))
        return [[TopicCopy(copy.queue, *next(published)) for copy in part] for part in rounds]
