"""Data types of topics: who gets a copy, and what happened to each copy."""

from collections.abc import Sequence
from typing import NamedTuple

from .model import Draft, PublishStatus

TOPIC_BATCH = 1000
"""The most messages in one statement: each counts once for every subscriber."""


class Subscription(NamedTuple):
    """A queue that gets a copy of what is published to a topic.

    ``channel`` and ``kind`` replace those of the message; None leaves them as published.
    """

    topic: str
    queue: str
    channel: str | None = None
    kind: str | None = None


class TopicCopy(NamedTuple):
    """What happened to one queue's copy of a message; ``id`` is None if it was refused."""

    queue: str
    id: int | None
    status: PublishStatus

    @property
    def existing(self) -> bool:
        """Whether a live message with the same key was in that queue already."""
        return self.status == "existing"

    @property
    def replaced(self) -> bool:
        """Whether it took the place of a waiting copy with the same key in that queue."""
        return self.status == "replaced"

    @property
    def refused(self) -> bool:
        return self.id is None


def copies(draft: Draft, subscriptions: Sequence[Subscription]) -> list[Draft]:
    """One draft for each subscriber, for engines whose database cannot do it by itself."""
    return [
        draft._replace(
            queue=subscription.queue,
            channel=subscription.channel or draft.channel,
            kind=draft.kind if subscription.kind is None else subscription.kind,
        )
        for subscription in subscriptions
    ]
