"""Topics and schedules of the site: what can be part of the site's transaction is."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.client.sync_schedules import Schedules
from penstock.client.sync_topic import Topic
from penstock.topic import Copy

InTransaction = Callable[..., Any]
"""Calls a verb with these arguments on the site's connection."""


class SiteTopic:
    """As :class:`penstock.Topic`; copies and subscriptions belong to the site's transaction."""

    def __init__(self, topic: Topic, in_transaction: InTransaction) -> None:
        self._topic = topic
        self._in_transaction = in_transaction

    def publish(self, payload: Any, **options: Any) -> Sequence[Copy]:
        copies: Sequence[Copy] = self._in_transaction(self._topic.publish, payload, **options)
        return copies

    def publish_many(self, messages: Iterable[Any], **options: Any) -> Sequence[Sequence[Copy]]:
        copies: Sequence[Sequence[Copy]] = self._in_transaction(
            self._topic.publish_many, messages, **options
        )
        return copies

    def subscribe(self, queue: str | None = None, **options: Any) -> None:
        self._in_transaction(self._topic.subscribe, queue, **options)

    def unsubscribe(self, queue: str | None = None) -> bool:
        there: bool = self._in_transaction(self._topic.unsubscribe, queue)
        return there

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topic, name)


class SiteSchedules:
    """As :class:`penstock.Schedules`; a removal belongs to the site's transaction."""

    def __init__(self, schedules: Schedules, in_transaction: InTransaction) -> None:
        self._schedules = schedules
        self._in_transaction = in_transaction

    def remove(self, name: str, **options: Any) -> None:
        self._in_transaction(self._schedules.remove, name, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedules, name)
