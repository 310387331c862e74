"""Topics: the database makes the copies, in one round trip."""

from collections.abc import Sequence

from penstock.model import Draft
from penstock.plan import Plan
from penstock.topic import TOPIC_BATCH, Copy, Subscription

from .publishing import Publishing, columns

_QUEUE = Draft._fields.index("queue")


class Topics(Publishing):
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._say("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._say("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._say("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[Copy]]]:
        answers: list[list[Copy]] = [[] for _ in drafts]
        for start in range(0, len(drafts), TOPIC_BATCH):
            values = columns(drafts[start : start + TOPIC_BATCH])
            del values[_QUEUE]
            rows = yield self._say_now("publish_topic", topic, *values)
            for ordinal, queue, id, status in rows:
                taken = status in ("published", "existing")
                answers[start + ordinal - 1].append(Copy(queue, id if taken else None, status))
        return answers
