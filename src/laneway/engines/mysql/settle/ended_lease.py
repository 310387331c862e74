"""Leases that are about to end, by their holder or by upkeep, as the statements read them."""

from typing import Any, NamedTuple

from laneway.engines.mysql.claim.lock import ChannelRef

from .behind import EndedKey
from .end import HistoryRow


class CompletedLease(NamedTuple):
    """A row of lock_leases. ``tied``: it holds a slot of its channel, or its message has a key."""

    id: int
    fence: int
    tied: bool
    now: int
    history: bytes

    @classmethod
    def read(cls, text: bytes | str) -> "CompletedLease":
        plain = text.decode() if isinstance(text, bytes) else text
        id, fence, tied, now, history = plain.split(",")
        return cls(int(id), int(fence), tied == "1", int(now), history.encode())


class SlotAndKey(NamedTuple):
    """A row of lease_slots_and_keys."""

    id: int
    channel_id: bytes
    counted: int
    queue: bytes
    channel: bytes
    key: bytes | None
    key_window: int | None
    owner: int | None
    behind: int | None
    behind_due: int | None

    @property
    def channel_ref(self) -> ChannelRef:
        return self.channel_id, self.queue, self.channel

    @property
    def ended_key(self) -> EndedKey | None:
        if self.key is None:
            return None
        own = (self.id, self.queue, self.key, self.key_window)
        return EndedKey(*own, self.owner, self.behind, self.behind_due)


class EndedLease(NamedTuple):
    """A row of lock_leases_and_messages, or of lock_expired_leases."""

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
    def channel_ref(self) -> ChannelRef:
        return self.channel_id, self.queue, self.channel

    def history_row(
        self, outcome: bytes, *, dead: bool = False, reason: Any = None, error: Any = (None, None)
    ) -> HistoryRow:
        """Its attempt in the history. It is not the end of the message."""
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
            None,
        )

    def waited(self, row: HistoryRow, milliseconds: int | None) -> HistoryRow:
        """The row, with the time at which the handler began."""
        if milliseconds is None:
            return row
        return *row[:-1], min(self.claimed_at + 1000 * milliseconds, self.now)


def ended_key(id: int, queue: bytes, key: bytes | None, window: int | None) -> EndedKey | None:
    return None if key is None else EndedKey(id, queue, key, window)
