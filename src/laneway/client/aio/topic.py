"""A topic: one publish, a copy for each subscribed queue."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from laneway.client.shared.draft import TaskTarget, draft_all, draft_new, refusal
from laneway.durations import Duration
from laneway.model import Draft, NewMessage, OnDuplicate
from laneway.names import check_kind, check_name
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy

from .core import AsyncCore


class AsyncTopic:
    """What several queues can subscribe to; it need not exist before.

    >>> orders = queue.topic("orders")
    >>> await orders.subscribe("receipts")
    >>> await orders.subscribe("statistics", channel="all", kind="count_order")
    >>> await orders.publish({"order": 9182}, channel="tenant-42")
    """

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self.name = name

    async def subscribe(
        self,
        queue: str | TaskTarget | None = None,
        *,
        channel: str | None = None,
        kind: str | None = None,
        connection: object = None,
    ) -> None:
        """Gives a queue (by default the client's) a copy of what is published from now on. A task
        stands for its queue and its kind.

        ``channel`` and ``kind`` replace those of the published message in its copies. Safe to
        repeat; replaces the whole subscription.
        """
        if isinstance(queue, TaskTarget):
            kind, queue = queue.kind if kind is None else kind, queue.queue
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        wanted = Subscription(
            self.name,
            target,
            None if channel is None else check_name("channel", channel),
            None if kind is None else check_kind(kind),
        )
        await self._core.run(self._core.engine.subscribe(wanted), connection)

    async def unsubscribe(
        self, queue: str | TaskTarget | None = None, *, connection: object = None
    ) -> bool:
        """Stops copies for this queue; returns whether it was subscribed. Its copies stay."""
        if isinstance(queue, TaskTarget):
            queue = queue.queue
        target = self._core.options.queue if queue is None else check_name("queue", queue)
        return await self._core.run(self._core.engine.unsubscribe(self.name, target), connection)

    async def subscriptions(self) -> Sequence[Subscription]:
        """Who gets a copy, by queue."""
        return await self._core.run(self._core.engine.subscriptions(self.name))

    async def publish(
        self,
        payload: Any,
        *,
        channel: str = "default",
        kind: str = "",
        key: str | None = None,
        key_window: Duration | None = None,
        on_duplicate: OnDuplicate = "keep",
        debounce_for: Duration | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        at: datetime | None = None,
        expires_in: Duration | None = None,
        expires_at: datetime | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        keep_result: Duration | None = None,
        connection: object = None,
    ) -> Sequence[TopicCopy]:
        """Publishes a copy into each subscribed queue, all or none; returns one TopicCopy each.

        An empty result means that nobody is subscribed. A ``key`` applies in each queue separately.
        The other arguments are those of ``queue.publish``.

        >>> [copy.queue for copy in await queue.topic("orders").publish({"order": 9182})]
        """
        message = NewMessage(
            payload,
            channel,
            None,
            kind,
            key,
            key_window,
            headers,
            priority,
            delay,
            at,
            expires_in,
            expires_at,
            max_attempts,
            content_type,
            keep_result,
            on_duplicate,
            debounce_for,
        )
        options = self._core.options
        draft = draft_new(message, options.queue, channel, options.max_payload)
        return (await self._publish([draft], connection))[0]

    async def publish_many(
        self,
        messages: Iterable[Any],
        *,
        channel: str = "default",
        connection: object = None,
    ) -> Sequence[Sequence[TopicCopy]]:
        """Publishes copies of many messages, all or none; returns the copies of each.

        >>> await queue.topic("orders").publish_many([{"order": 1}, {"order": 2}])
        """
        options = self._core.options
        drafts = draft_all(messages, options.queue, channel, options.max_payload)
        return await self._publish(drafts, connection) if drafts else []

    async def _publish(self, drafts: Sequence[Draft], connection: object) -> list[list[TopicCopy]]:
        plan = self._core.engine.publish_topic(self.name, drafts)
        several = len(drafts) > TOPIC_BATCH or any(draft.mode is not None for draft in drafts)
        rounds = await self._core.run(plan, connection, atomic=several)
        results = [copy for copies in rounds for copy in copies]
        for copy in results:
            if copy.refused:
                where = f"a channel of queue {copy.queue!r}"
                raise refusal(where, results, copy.status == "closed")
        return rounds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
