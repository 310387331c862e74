"""publish: append messages, and one wake for each channel, priority and time concerned.

Invariant: it takes no lock that another publisher or a claim waits for, except that two open
publishes of the same key wait for each other.

Topics: a message becomes one copy for each subscribed queue; all are published together.
"""

from collections.abc import Sequence

from laneway.contract import BATCH
from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.events import MysqlEventOutbox
from laneway.engines.mysql.names import data, text
from laneway.engines.mysql.packets import chunks
from laneway.model import Draft, Published
from laneway.plan import Plan
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy, copies

from .keys import MysqlKeys
from .rows import NewRow, new_rows, wakes


class MysqlPublish(MysqlKeys, MysqlEventOutbox):
    @repeatable
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        published: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            published += yield from self._publish(drafts[start : start + BATCH])
        return published

    def _publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        rows = yield self._statement("publish_state", self._now())
        ((now, packet, step, any_gated, any_listener),) = rows
        batch = new_rows(drafts, int(now))
        keyed = [row for row in batch if row.key is not None]
        if keyed:
            yield from self._reserve_keys(keyed, int(now))
        if any_gated:
            yield from self._refuse(batch)
        new = [row for row in batch if row.status is None]
        yield from self._append(new, int(now), int(packet), int(step))
        if any_listener:
            ids = [row.id for row in new if row.id is not None]
            yield from self._add_message_events("published", ids)
        if keyed:
            yield from self._assign_keys(keyed)
        return [row.published() for row in batch]

    def _append(self, new: Sequence[NewRow], now: int, packet: int, step: int) -> Plan[None]:
        for chunk in chunks(new, packet):
            rows = yield self._statement("add_messages", [row.row for row in chunk])
            first = int(rows[0][0])
            for number, row in enumerate(chunk):
                row.id = first + number * step
        yield from self._insert("add_wakes", wakes(new, now))
        expiring = [(row.id, row.expires_at) for row in new if row.expires_at is not None]
        yield from self._insert("add_expiries", expiring)

    def _refuse(self, batch: Sequence[NewRow]) -> Plan[None]:
        """Marks messages whose channel is full or being removed.

        The backlog is what this publisher sees as committed and unfinished in the channel, plus the
        batch itself. Publishers do not wait for each other, so transactions that are open at the
        same time can exceed the limit by what they hold.
        """
        new = [row for row in batch if row.status is None]
        if not new:
            return
        rows = yield self._statement("refusing_channels", sorted({row.channel_id for row in new}))
        closed = {bytes(row[0]) for row in rows if row[1]}
        limits = {bytes(row[0]): int(row[2]) for row in rows if row[2] is not None}
        room = (yield from self._room(limits)) if limits else {}
        for row in new:
            if row.channel_id in closed:
                row.status = "closed"
            elif row.channel_id in room:
                room[row.channel_id] -= 1
                if room[row.channel_id] < 0:
                    row.status = "full"

    def _room(self, limits: dict[bytes, int]) -> Plan[dict[bytes, int]]:
        """How many more messages each channel takes."""
        rows = yield self._union("count_backlog", list(limits.items()))
        return {bytes(id): limits[bytes(id)] - int(count) for id, count in rows}


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
