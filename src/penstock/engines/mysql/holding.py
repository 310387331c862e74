"""A lease that its holder, or upkeep, is about to end."""

from typing import Any, NamedTuple

from .ending import HistoryRow, KeyHolder


class Held(NamedTuple):
    """What held.sql says of a lease. ``tied``: its end must be told to its channel or its key."""

    id: int
    fence: int
    tied: bool
    now: int
    history: bytes

    @classmethod
    def read(cls, text: bytes | str) -> "Held":
        plain = text.decode() if isinstance(text, bytes) else text
        id, fence, tied, now, history = plain.split(",")
        return cls(int(id), int(fence), tied == "1", int(now), history.encode())


class Tie(NamedTuple):
    """The columns of ties.sql."""

    id: int
    channel_id: bytes
    counted: int
    queue: bytes
    channel: bytes
    key: bytes | None
    key_window: int | None

    @property
    def lane(self) -> tuple[bytes, bytes, bytes]:
        return self.channel_id, self.queue, self.channel

    @property
    def key_holder(self) -> KeyHolder | None:
        return key_holder(self.id, self.queue, self.key, self.key_window)


class FullyHeld(NamedTuple):
    """The columns of held_fully.sql."""

    id: int
    fence: int
    channel_id: bytes
    counted: int
    queue: bytes
    channel: bytes
    key: bytes | None
    key_window: int | None
    now: int
    history: bytes
    claimed_at: int
    worker: bytes
    kind: bytes
    priority: int
    due: int
    published_at: int
    first_published_at: int
    attempt: int
    spent: int
    max_attempts: int
    payload_size: int

    @property
    def lane(self) -> tuple[bytes, bytes, bytes]:
        return self.channel_id, self.queue, self.channel

    def entry(
        self, outcome: bytes, *, dead: bool = False, reason: Any = None, error: Any = (None, None)
    ) -> HistoryRow:
        """Its attempt in the history; not the message's end."""
        return (
            self.id,
            self.fence,
            self.attempt + 1,
            self.first_published_at,
            self.published_at,
            self.due,
            self.claimed_at,
            self.now,
            self.payload_size,
            False,
            dead,
            self.priority,
            self.queue,
            self.channel,
            self.kind,
            self.worker,
            outcome,
            reason,
            *error,
        )


def key_holder(id: int, queue: bytes, key: bytes | None, window: int | None) -> KeyHolder | None:
    return None if key is None else KeyHolder(id, queue, key, window)
