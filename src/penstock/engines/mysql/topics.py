"""Topics: the copies are made here, and published together."""

from collections.abc import Sequence

from penstock.model import Draft
from penstock.plan import Plan
from penstock.topic import TOPIC_BATCH, Copy, Subscription, copies

from .names import data, text
from .publishing import Publishing
from .repeating import repeatable


class Topics(Publishing):
    @repeatable
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._say("subscribe", [tuple(map(data, subscription))])

    @repeatable
    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._say("subscribed", topic.encode(), queue.encode())
        if rows:
            yield self._say("unsubscribe", topic.encode(), queue.encode())
        return bool(rows)

    @repeatable
    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        return (yield from self._subscriptions(topic))

    @repeatable
    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[Copy]]]:
        subscribers = yield from self._subscriptions(topic)
        answers: list[list[Copy]] = []
        for start in range(0, len(drafts), TOPIC_BATCH):
            batch = drafts[start : start + TOPIC_BATCH]
            rounds = [copies(draft, subscribers) for draft in batch]
            published = iter((yield from self.publish([c for part in rounds for c in part])))
            answers += [[Copy(c.queue, *next(published)) for c in part] for part in rounds]
        return answers

    def _subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._say("subscriptions", data(topic))
        return [Subscription(*map(text, row)) for row in rows]  # type: ignore[arg-type]
