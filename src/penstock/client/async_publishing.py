"""publish and publish_many."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from penstock.errors import BacklogFull, ChannelClosed
from penstock.model import Draft, NewMessage, Published

from .async_core import AsyncCore
from .drafting import draft_all, draft_new


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

    async def _publish(self, drafts: Sequence[Draft], connection: object) -> list[Published]:
        engine = self._core.engine
        results = await self._core.run_items(engine.publish, drafts, connection)
        for draft, result in zip(drafts, results, strict=True):
            if result.id is None:
                _refuse(draft, results, result.status == "closed")
        return results


def _refuse(draft: Draft, results: Sequence[Published], closed: bool) -> None:
    where = f"channel {draft.channel!r} of queue {draft.queue!r}"
    refused = sum(result.refused for result in results)
    count = f"{refused} of {len(results)} messages refused"
    if closed:
        raise ChannelClosed(
            f"{where} is being removed, {count}: publish elsewhere or wait until it has drained",
            results,
        )
    raise BacklogFull(
        f"{where} is full, {count}: publish later, or raise its backlog limit", results
    )
