"""publish and publish_many, and topics."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from penstock.model import Draft, NewMessage, Published
from penstock.names import check_name
from penstock.topic import Subscription

from .async_core import AsyncCore
from .async_topic import AsyncTopic
from .drafting import draft_all, draft_new
from .refusing import refusal


class AsyncPublishing:
    """Part of the client."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def publish(
        self,
        payload: Any,
        *,
        channel: str = "default",
        queue: str | None = None,
        kind: str = "",
        key: str | None = None,
        key_window: timedelta | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        delay: timedelta | None = None,
        at: datetime | None = None,
        expires_in: timedelta | None = None,
        expires_at: datetime | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        connection: object = None,
    ) -> Published:
        """Publishes one message.

        The payload is bytes, text, or anything that is JSON. ``priority`` is 0 to 9, higher first.
        While a message with the same ``key`` lives in the queue, and for ``key_window`` after it
        was finished, nothing is published and the answer is "existing" with that one's id. With
        ``connection`` the message belongs to the caller's transaction. Raises BacklogFull or
        ChannelClosed, which leave that transaction as it was.

        >>> await queue.publish({"order": 9182}, channel="tenant-42", key="receipt:9182")
        """
        message = NewMessage(
            payload,
            channel,
            queue,
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
        )
        options = self._core.options
        draft = draft_new(message, options.queue, channel, options.max_payload)
        return (await self._publish([draft], connection))[0]

    async def publish_many(
        self,
        messages: Iterable[Any],
        *,
        channel: str = "default",
        queue: str | None = None,
        connection: object = None,
    ) -> list[Published]:
        """Publishes many messages or none: up to 10,000 in one round trip, more in one transaction.

        A message is a NewMessage or just a payload, for which ``channel`` and ``queue`` hold. If a
        channel refused some, raises BacklogFull or ChannelClosed, whose ``results`` say what
        happened to each; the others are published.

        >>> await queue.publish_many([{"order": 1}, NewMessage({"order": 2}, delay=hour)])
        """
        options = self._core.options
        target = options.queue if queue is None else queue
        drafts = draft_all(messages, target, channel, options.max_payload)
        return await self._publish(drafts, connection)

    def topic(self, name: str) -> AsyncTopic:
        """A topic, to publish to, subscribe to or look at; it need not exist.

        >>> await queue.topic("orders").publish({"order": 9182}, channel="tenant-42")
        """
        return AsyncTopic(self._core, check_name("topic", name))

    async def subscriptions(self) -> Sequence[Subscription]:
        """All subscriptions of all topics, by topic and queue."""
        return await self._core.run(self._core.engine.subscriptions(None))

    async def _publish(self, drafts: Sequence[Draft], connection: object) -> list[Published]:
        engine = self._core.engine
        keyed = any(draft.key is not None for draft in drafts)
        results = await self._core.run_items(engine.publish, drafts, connection, waits=keyed)
        for draft, result in zip(drafts, results, strict=True):
            if result.id is None:
                where = f"channel {draft.channel!r} of queue {draft.queue!r}"
                raise refusal(where, results, result.status == "closed")
        return results
