"""Topics: a copy for each subscribed queue, published together."""

from collections.abc import Sequence
from itertools import islice

from penstock.model import Draft
from penstock.plan import Plan
from penstock.topic import Copy, Subscription, copies

from .publishing import Publishing


class Topics(Publishing):
    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._say("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._say("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._look("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[Copy]]]:
        yield from self._begin()
        rows = yield self._say("subscriptions", topic)
        subscriptions = [Subscription(*row) for row in rows]
        if not subscriptions:
            return [[] for _ in drafts]
        flat = [copy for draft in drafts for copy in copies(draft, subscriptions)]
        answers = iter((yield from self.publish(flat)))
        return [
            [
                Copy(subscription.queue, *answer)
                for subscription, answer in zip(
                    subscriptions, islice(answers, len(subscriptions)), strict=True
                )
            ]
            for _ in drafts
        ]
