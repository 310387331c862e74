"""A draft on its way into the tables."""

from collections.abc import Sequence
from typing import Any

from penstock.model import Draft, Published, PublishStatus

from .names import pair_id
from .times import length, micros

WakeRow = tuple[int, bytes, int, int, int, int, int, bool, bytes, bytes]


class Post:
    """A draft, its row, and what becomes of it: ``status`` is None while it is to be published."""

    __slots__ = (
        "channel_id",
        "due",
        "expires_at",
        "first",
        "id",
        "key",
        "key_id",
        "priority",
        "queue",
        "row",
        "status",
    )

    def __init__(self, draft: Draft, now: int) -> None:
        queue, channel = draft.queue.encode(), draft.channel.encode()
        self.queue = queue
        self.channel_id = pair_id(queue, channel)
        self.priority = draft.priority
        self.due = _time(now, draft.at, draft.delay, now)
        self.expires_at = _time(now, draft.expires_at, draft.expires_in, None)
        self.key = None if draft.key is None else draft.key.encode()
        self.key_id = b"" if self.key is None else pair_id(queue, self.key)
        self.id: int | None = None
        self.status: PublishStatus | None = None
        self.first: Post | None = None
        """The one with the same key that comes before it in the batch."""
        self.row: tuple[Any, ...] = (
            self.channel_id,
            self.due,
            now,
            now,
            self.expires_at,
            None if draft.key_window is None else length(draft.key_window),
            draft.max_attempts,
            draft.priority,
            queue,
            channel,
            draft.kind.encode(),
            self.key,
            draft.content_type.encode(),
            None if draft.headers is None else draft.headers.encode(),
            draft.payload,
        )

    def answer(self) -> Published:
        if self.first is not None:
            taken = self.first.id is not None
            return Published(self.first.id, "existing" if taken else self.first.answer().status)
        return Published(self.id, self.status or "published")


def posts(drafts: Sequence[Draft], now: int) -> list[Post]:
    return [Post(draft, now) for draft in drafts]


def wakes(fresh: Sequence[Post], now: int) -> list[WakeRow]:
    """One per channel, priority and time. The position need not be a message's: none of them lies
    before it."""
    groups: dict[tuple[bytes, int, int], list[Post]] = {}
    for post in fresh:
        at = post.due if post.due > now else now
        groups.setdefault((post.channel_id, post.priority, at), []).append(post)
    return [_wake(at, group) for (_, _, at), group in groups.items()]


def _wake(at: int, group: list[Post]) -> WakeRow:
    first = group[0]
    due = min(post.due for post in group)
    lowest = min(post.id for post in group if post.id is not None)
    queue, channel = first.row[8], first.row[9]
    ahead = first.priority > 0 or due < at
    return at, first.channel_id, due, lowest, len(group), 0, first.priority, ahead, queue, channel


def _time(now: int, moment: Any, after: Any, default: Any) -> Any:
    if moment is not None:
        return micros(moment)
    return default if after is None else now + length(after)
