"""publish: append messages, and one wake for each channel, priority and time concerned.

Invariant: it takes no lock that another publisher or a claim waits for, except that two open
publishes of the same key wait for each other, and that one which replaces a message locks its
channel, as a claim does.

Topics: a message becomes one copy for each subscribed queue; all are published together.
"""

from collections.abc import Sequence

from laneway.contract import BATCH
from laneway.engines.key_modes import has_modes, publish_modes
from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.names import data, text
from laneway.model import Draft, Published
from laneway.plan import Plan
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy, copies

from .replace import MysqlReplace
from .rows import NewRow, kind_wakes, new_rows, wakes


class MysqlPublish(MysqlReplace):
    @repeatable
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace))
        published: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            published += yield from self._publish(drafts[start : start + BATCH])
        return published

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        rows = yield self._statement("publish_state", self._now())
        ((now, packet, step, any_gated, any_listener, by_kind),) = rows
        batch = new_rows(drafts, int(now))
        keyed = [row for row in batch if row.key is not None]
        if keyed:
            yield from self._reserve_keys(keyed, int(now))
        if any_gated:
            yield from self._refuse(batch)
        new = [row for row in batch if row.status is None]
        queues: set[bytes] = set()
        if by_kind:
            queues = {bytes(row[0]) for row in (yield self._statement("kind_queues"))}
        yield from self._append(new, int(now), int(packet), int(step), queues)
        if any_listener:
            ids = [row.id for row in new if row.id is not None]
            yield from self._add_message_events("published", ids)
        if keyed:
            yield from self._assign_keys(keyed)
        return [row.published() for row in batch]

    def _append(
        self, new: Sequence[NewRow], now: int, packet: int, step: int, by_kind: set[bytes]
    ) -> Plan[None]:
        """``by_kind``: the queues that are claimed so."""
        yield from self._add_messages(new, packet, step)
        plain = [row for row in new if row.queue not in by_kind] if by_kind else new
        yield from self._insert("add_wakes", wakes(plain, now))
        if len(plain) < len(new):
            laned = [row for row in new if row.queue in by_kind]
            yield from self._insert("add_kind_messages", [row.kind_row for row in laned])
            yield from self._insert("add_kind_wakes", kind_wakes(laned, now))


class MysqlTopics(MysqlPublish):
    @repeatable
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._statement("subscribe", [tuple(map(data, subscription))])

    @repeatable
    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._statement("lock_subscription", topic.encode(), queue.encode())
        if rows:
            yield self._statement("unsubscribe", topic.encode(), queue.encode())
        return bool(rows)

    @repeatable
    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        return (yield from self._subscriptions(topic))

    @repeatable
    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        subscribers = yield from self._subscriptions(topic)
        copied: list[list[TopicCopy]] = []
        for start in range(0, len(drafts), TOPIC_BATCH):
            batch = drafts[start : start + TOPIC_BATCH]
            rounds = [copies(draft, subscribers) for draft in batch]
            published = iter((yield from self.publish([c for part in rounds for c in part])))
            copied += [[TopicCopy(c.queue, *next(published)) for c in part] for part in rounds]
        return copied

    def _subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._statement("subscriptions", data(topic))
        return [Subscription(*map(text, row)) for row in rows]  # type: ignore[arg-type]
