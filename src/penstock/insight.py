"""What operators are shown: messages wherever they are, channels, what ended, and what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from .errors import InvalidOption, shown
from .model import ChannelNumbers, HistoryEntry, Policy

_LAST = 2**63 - 1

MessageState = Literal["waiting", "scheduled", "leased", "dead"]


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """A message that has not ended, without its payload.

    ``attempt`` counts the tries begun so far. ``due`` is None if it is never. The last fields are
    of a leased one (fence, worker, claimed_at, until) and of a dead letter (the others).
    """

    id: int
    queue: str
    channel: str
    kind: str
    key: str | None
    state: MessageState
    priority: int
    due: datetime | None
    published_at: datetime
    first_published_at: datetime
    expires_at: datetime | None
    attempt: int
    max_attempts: int
    content_type: str
    headers: Mapping[str, Any]
    payload_size: int
    fence: int | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    until: datetime | None = None
    died_at: datetime | None = None
    reason: str | None = None
    error_type: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages are meant; what is None matches all that are not dead."""

    queue: str | None = None
    channel: str | None = None
    kind: str | None = None
    state: MessageState | None = None


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """A channel that holds anything, or whose policy is not the default one."""

    queue: str
    channel: str
    numbers: ChannelNumbers
    policy: Policy


def read_position(position: object, parts: int) -> tuple[int, ...]:
    """What HistoryPage.position of an engine that writes so many numbers stands for."""
    numbers = position.split(".") if isinstance(position, str) else []
    fine = len(numbers) == parts and all(n.isascii() and n.isdigit() for n in numbers)
    read = tuple(map(int, numbers)) if fine and max(map(len, numbers)) < 20 else ()
    if not read or max(read) > _LAST:
        raise InvalidOption(
            f"{shown(position)} is no position of this database: start with history_since(), and "
            "pass on what the last answer said"
        )
    return read


class HistoryPage(NamedTuple):
    """What ended since a position, and the position to go on from."""

    entries: list[HistoryEntry]
    position: str


class Totals(NamedTuple):
    """Numbers that only rise; two of them, some time apart, tell the rate.

    ``published`` counts messages and ``ended`` history entries, both with gaps: what was rolled
    back has used up its number.
    """

    published: int
    ended: int


Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw, and what to do about it unless it is well."""

    check: str
    level: Level
    says: str
    mend: str | None = None
