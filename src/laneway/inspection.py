"""Data types for operators: messages in any state, channels, history pages, findings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from .errors import InvalidOption, shown
from .model import ChannelStats, DeadLetter, HistoryEntry, Listing, Policy, Progress

_LAST = 2**63 - 1

LOOK = 10_000
"""The most rows of a table that a look reads, however many there are."""

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
    traceback: str | None = None
    """Only in the answer of ``message()``, of a dead letter."""
    progress: Progress | None = None
    """What the handler of a leased one said last about how far it is."""


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages are meant; what is None matches all that are not dead."""

    queue: str | None = None
    channel: str | None = None
    kind: str | None = None
    state: MessageState | None = None


class MessagePage(Listing[MessageInfo]):
    """Messages by id. ``next`` is the id to go on after, None at the end; ``looked`` how many rows
    were read for it. A page can be empty and not the last one: a call looks at LOOK rows at most.
    """

    def __init__(
        self, found: Iterable[MessageInfo] = (), next: int | None = None, looked: int = 0
    ) -> None:
        super().__init__(found)
        self.next = next
        self.looked = looked


WaitsFor = Literal["queue paused", "paused", "throttled", "concurrency", "rate", "closing"]
"""Why a channel starts nothing at the moment: its queue or itself is paused, as many as allowed
are leased, or its rate allows the next start later. Closing: it is being removed, and refuses new
messages. A channel in which messages wait for a shared limit says which, and how full it is: "limit
stripe: 20 of 20 running". In a queue that is fair by time one that has had more than others says
how much: "time 9.3 s ahead"."""


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """A channel that holds anything, or whose policy is not the default one."""

    queue: str
    channel: str
    stats: ChannelStats
    policy: Policy
    waits_for: WaitsFor | str | None = None


class ChannelPage(Listing[ChannelInfo]):
    """Channels, the fullest first among those that were looked at. ``next`` is the position to go
    on from, None at the end; ``looked`` how many rows were read for it."""

    def __init__(
        self, found: Iterable[ChannelInfo] = (), next: str | None = None, looked: int = 0
    ) -> None:
        super().__init__(found)
        self.next = next
        self.looked = looked


@dataclass(frozen=True, slots=True)
class ChannelFilter:
    """Which channels are meant; None matches all. ``limited``: whether it has a policy other than
    the default one. ``channel`` is the exact name, ``prefix`` its beginning."""

    queue: str | None = None
    channel: str | None = None
    prefix: str | None = None
    paused: bool | None = None
    limited: bool | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Dead letters of one queue, kind, reason and error: the texts of reason and error are the same
    but for numbers, ids and quoted values, which ``signature`` masks. ``example`` is the id of one
    of the newest."""

    queue: str
    kind: str
    reason: str
    error_type: str | None
    signature: str
    count: int
    oldest: datetime
    newest: datetime
    example: int
    text: str = ""
    """The last line of the error: as it is if all have the same, else the signature."""
    reasons: int = 1
    """How many different reasons there are. If more than one, ``reason`` is masked, and no filter
    finds it."""


class DeadLetterPosition(NamedTuple):
    """Where a list of dead letters goes on: after those that died then, down to this id."""

    died_at: datetime
    id: int


class DeadLetterPage(Listing[DeadLetter]):
    """Dead letters, the newest first. ``next`` is the position to go on after, None at the end. A
    page can be empty and not the last one: a call looks at LOOK letters at most."""

    def __init__(
        self, found: Iterable[DeadLetter] = (), next: DeadLetterPosition | None = None
    ) -> None:
        super().__init__(found)
        self.next = next


class DeadLetterCount(int):
    """How many dead letters were found; ``or_more`` if the count stopped before the last one."""

    or_more: bool

    def __new__(cls, count: int, or_more: bool = False) -> "DeadLetterCount":
        found = super().__new__(cls, count)
        found.or_more = or_more
        return found


class DeadLetterGroups(NamedTuple):
    """The largest groups first, of the newest ``looked`` dead letters; ``complete`` if these were
    all."""

    groups: list[DeadLetterGroup]
    looked: int
    complete: bool


def read_position(position: object, parts: int) -> tuple[int, ...]:
    """The ``parts`` numbers that an engine wrote into HistoryPage.position."""
    numbers = position.split(".") if isinstance(position, str) else []
    fine = len(numbers) == parts and all(n.isascii() and n.isdigit() for n in numbers)
    read = tuple(map(int, numbers)) if fine and max(map(len, numbers)) < 20 else ()
    if not read or max(read) > _LAST:
        raise InvalidOption(
            f"{shown(position)} is not a position of this database: start with history_since() and "
            "pass the position that the last call returned"
        )
    return read


class HistoryPage(NamedTuple):
    """History entries since a position, and the position to continue from."""

    entries: list[HistoryEntry]
    position: str


class Totals(NamedTuple):
    """Counters that rise; two readings some time apart give the rate.

    ``published`` counts messages and ``ended`` history entries, both with gaps: a rollback
    uses up numbers. On PostgreSQL and MySQL they count from the last start or fail-over of the
    server: a lower reading than before means that they began anew.
    """

    published: int
    ended: int


Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Repair:
    """A part of the schema that was missing or changed, and whether it was put back."""

    part: str
    done: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, with a fix unless the level is "ok", and the queues that it names,
    all of them."""

    check: str
    level: Level
    message: str
    fix: str | None = None
    queues: tuple[str, ...] = ()
