"""Data types of events: what happened to messages, and how they ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

What = Literal[
    "published",
    "claimed",
    "completed",
    "deferred",
    "retried",
    "given_back",
    "failed",
    "expired",
    "dead",
    "cancelled",
    "lapsed",
    "redriven",
    "discarded",
    "missed",
]
WHAT: tuple[What, ...] = get_args(What)

MOST_MAIL = 100_000
"""A mailbox that is not read gets nothing more after this many rows in all mailboxes."""


class Event(NamedTuple):
    """Something that happened to a message, and was committed.

    ``what`` is the outcome as the history names it. "dead" follows the event that made the message
    a dead letter. "missed" belongs to no message: the reader was disconnected or too slow, and may
    have missed something.
    """

    what: What
    message_id: int | None
    queue: str
    channel: str
    kind: str
    at: datetime | None


MISSED = Event("missed", None, "", "", "", None)


class EventFilter(NamedTuple):
    """Which events are meant; None matches all."""

    what: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    channels: Sequence[str] | None = None
    kinds: Sequence[str] | None = None


class Heard(NamedTuple):
    """What a reader found in its mailbox. ``alive`` says whether it still gets mail, ``behind`` how
    many rows were written to all mailboxes since it was last renewed."""

    events: list[Event]
    alive: bool
    behind: int


Outcome = Literal["completed", "dead", "cancelled", "lapsed", "discarded", "skipped", "unknown"]


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """How a message ended.

    "unknown": it is neither waiting nor leased nor a dead letter, and the history does not tell
    how it ended, because it keeps only failures or nothing, or because it is too old; or the
    message never was. "skipped": a node of a flow whose parents ended otherwise than it was meant
    for; it never was a message. The last fields are those of a dead letter.
    """

    message_id: int
    outcome: Outcome
    ended_at: datetime | None = None
    reason: str | None = None
    error_type: str | None = None
    error: str | None = None
    kept_until: datetime | None = None
    """How long its result is kept, if it is."""


class StoredResult(NamedTuple):
    """What a handler returned, as it is stored."""

    content_type: str
    payload: bytes
