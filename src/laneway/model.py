"""Data types of the public API: what goes in and what comes out. Knows no database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, Final, Literal, NamedTuple, TypeVar

from .durations import Duration
from .spelling import explains_mistakes

T = TypeVar("T")

_COUNTS = ("waiting", "scheduled", "leased", "dead", "channels")
_ROWS, _CELL = 100, 200  # what a notebook shows: rows of a table, characters of a cell


class Listing(list[T]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from html import escape

        def cells(tag: str, values: Iterable[object]) -> str:
            shown = (escape(str("" if value is None else value)[:_CELL]) for value in values)
            return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in shown)}</tr>"

        first = self[:_ROWS]
        known = getattr(first[0], "__dataclass_fields__", None) if first else ()
        names = list(getattr(first[0], "_fields", ()) if known is None else known)
        used = [n for n in names if any(getattr(row, n) is not None for row in first)]
        rows = [cells("td", (_shown(row, name) for name in used)) for row in first]
        rest = f"<p>and {len(self) - _ROWS:,} more</p>" if len(self) > _ROWS else ""
        return f"<table>{cells('th', used)}{''.join(rows)}</table>{rest}" if used else "<p>none</p>"


def _shown(row: object, name: str) -> object:
    value = getattr(row, name)
    return row.shown(name, value) if isinstance(row, Counted) else value


class Counted:
    """Numbers of messages, which tell people when they are not exact."""

    __slots__ = ()

    def shown(self, name: str, value: object) -> object:
        """A field's value for people: "about" or "at least" so many, if that is what is known."""
        if getattr(self, "exact", True) or name not in _COUNTS or not value:
            return value
        known = getattr(self, "as_of", None) is not None and name != "channels"
        return f"{'about' if known else 'at least'} {value:,}"

    def __repr__(self) -> str:
        names = getattr(self, "__dataclass_fields__", ())
        fields = ((name, getattr(self, name)) for name in names)
        texts = (
            f"{name}={shown if shown is not value else repr(value)}"
            for name, value in fields
            for shown in (self.shown(name, value),)
        )
        return f"{type(self).__name__}({', '.join(texts)})"


class ClaimStatus(StrEnum):
    """What a claim found: messages, nothing due, only blocked channels, or a concurrent claim."""

    GOT = "got"
    EMPTY = "empty"
    BLOCKED = "blocked"
    BUSY = "busy"


class Keep(Enum):
    """The type of :data:`KEEP`."""

    KEEP = "keep"

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep.KEEP
"""Leave a saved state or a limit as it is. ``None`` removes it, anything else replaces it."""


# Not frozen: they are made by the thousand, and a frozen one costs three times as much to make.
@dataclass(slots=True)
class NewMessage:
    """A message to publish with ``publish_many``; fields that are left out get the call's defaults.

    >>> queue.publish_many([NewMessage({"order": 1}, channel="tenant-42", priority=5)])
    """

    payload: Any
    channel: str | None = None
    queue: str | None = None
    kind: str = ""
    key: str | None = None
    key_window: Duration | None = None
    headers: Mapping[str, Any] | None = None
    priority: int = 0
    delay: Duration | None = None
    at: datetime | None = None
    expires_in: Duration | None = None
    expires_at: datetime | None = None
    max_attempts: int | None = None
    content_type: str | None = None
    keep_result: Duration | None = None
    on_duplicate: "OnDuplicate" = "keep"
    debounce_for: Duration | None = None
    limits: "Names | None" = None
    key_scope: "KeyScope" = "kind"


KeyScope = Literal["kind", "channel", "queue"]
"""Where a key holds: among messages of this kind in this channel, of all kinds in this channel, or
in the whole queue."""

Names = list[str] | tuple[str, ...] | set[str] | frozenset[str]
"""Some names. One alone is a text, whose letters would be taken for names."""

OnDuplicate = Literal["keep", "replace", "debounce"]
"""What a publish does if its key is in use: see ``queue.publish``."""

PublishStatus = Literal["published", "replaced", "existing", "full", "closed"]


class Published(NamedTuple):
    """What happened to one message of a publish; ``id`` is None if it was refused."""

    # Answers come by the thousand, and a tuple is made five times faster than a frozen dataclass.

    id: int | None
    status: PublishStatus

    @property
    def existing(self) -> bool:
        """Whether a live message with the same key was there already; ``id`` is that one's."""
        return self.status == "existing"

    @property
    def replaced(self) -> bool:
        """Whether it took the place of a waiting message with the same key; ``id`` is that
        one's."""
        return self.status == "replaced"

    @property
    def refused(self) -> bool:
        return self.id is None


SettleStatus = Literal[
    "completed", "cancelled", "deferred", "dead", "failed", "extended", "given_back", "lost"
]


class Settled(NamedTuple):
    """What happened to one message of a settling call.

    ``status`` is "lost" if the lease was no longer ours, and "dead" if a deferral with an error
    used up the attempts. ``until`` is the new end of an extended lease.
    """

    id: int
    fence: int
    status: SettleStatus
    until: datetime | None = None

    @property
    def lost(self) -> bool:
        return self.status == "lost"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What happened to one message of a cancel: a waiting message is cancelled; the worker of a
    running one is asked to stop it, if ``running=True`` was said."""

    id: int
    status: Literal["cancelled", "requested", "leased", "dead", "absent"]


@dataclass(frozen=True, slots=True)
class MadeDue:
    """What happened to one message of run_now: "due" if it was scheduled for later and is due now,
    "waiting" if it was due already."""

    id: int
    status: Literal["due", "waiting", "leased", "dead", "absent"]


@explains_mistakes
@dataclass(frozen=True, slots=True)
class Policy:
    """A channel's limits; None is unlimited.

    ``rate`` is in starts per second, ``burst`` how many may start at once (by default one second's
    worth). ``paused``, ``paused_until`` and ``closing`` are read, and set by ``pause()`` and
    ``remove()``; ``throttled`` if a handler raised Throttled, which pauses the channel.

    >>> queue.set_policies({"tenant-42": Policy(concurrency=2, rate=10, burst=20)})
    """

    concurrency: int | None = None
    rate: float | None = None
    burst: int | None = None
    backlog: int | None = None
    weight: float = 1.0
    paused: bool = False
    closing: bool = False
    paused_until: datetime | None = None
    throttled: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up, and why."""

    id: int
    queue: str
    channel: str
    kind: str
    key: str | None
    priority: int
    died_at: datetime
    published_at: datetime
    first_published_at: datetime
    attempt: int
    max_attempts: int
    content_type: str
    headers: Mapping[str, Any]
    payload: bytes
    reason: str
    error_type: str | None
    error: str | None
    traceback: str | None = None
    """Of the last attempt; see the worker's option ``traceback``."""


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Selects dead letters; None matches all. ``until`` is exclusive."""

    queue: str | None = None
    channel: str | None = None
    kind: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    error_type: str | None = None

    @property
    def rare(self) -> bool:
        """Whether it may pass by many letters for each that it finds: no index helps."""
        return any((self.channel, self.reason, self.error_type)) or self.kind is not None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One finished attempt of a message, or its end without one."""

    id: int
    message_id: int
    queue: str
    channel: str
    kind: str
    priority: int | None
    attempt: int
    fence: int | None
    worker: str | None
    outcome: str
    reason: str | None
    error_type: str | None
    error: str | None
    first_published_at: datetime | None
    published_at: datetime | None
    due: datetime | None
    claimed_at: datetime | None
    ended_at: datetime
    payload_size: int | None
    terminal: bool
    dead: bool
    started_at: datetime | None = None
    """When its handler began, if it had waited inside the worker before; else None."""


@dataclass(frozen=True, slots=True, repr=False)
class ChannelStats(Counted):
    """How many messages of a channel are in which state; at least so many if not ``exact``, because
    a look reads a limited number of rows."""

    queue: str
    channel: str
    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    dead: int = 0
    oldest_due: datetime | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class QueueStats(Counted):
    """How many messages of a queue are in which state, over ``channels`` channels.

    A look reads a limited number of rows. If there are more, ``exact`` is False, ``channels`` is at
    least that many, and the counts are about those of ``as_of``, when upkeep counted last; without
    ``as_of`` they are at least that many.
    """

    queue: str
    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    dead: int = 0
    channels: int = 0
    oldest_due: datetime | None = None
    exact: bool = True
    as_of: datetime | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What upkeep did; ``ran`` is False if another process was running it."""

    ran: bool
    expired: int = 0
    buried: int = 0
    lapsed: int = 0
    tidied: int = 0
    partitioned: int = 0


HistoryKept = Literal["all", "failures", "none"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the whole schema: how much history and audit is kept, and the back-off after
    expired leases."""

    history: HistoryKept
    history_days: int
    backoff_initial: timedelta
    backoff_max: timedelta
    audit_days: int = 90


class KeyMode(NamedTuple):
    """A message that replaces a waiting one with its key. ``debounce_for``: its due time moves to
    the new delay, at most this long after the first was published; None leaves the time alone."""

    debounce_for: timedelta | None


class Draft(NamedTuple):
    """A checked and encoded message, ready for an engine. ``headers`` is JSON text."""

    payload: bytes
    queue: str
    channel: str
    kind: str
    content_type: str
    headers: str | None
    key: str | None
    key_window: timedelta | None
    priority: int
    delay: timedelta | None
    at: datetime | None
    expires_in: timedelta | None
    expires_at: datetime | None
    max_attempts: int
    key_scope: KeyScope | None = None
    """None: the kind's."""
    mode: KeyMode | None = None
    """Not a column: the last field, which engines cut off. None: a key in use is kept."""


class Deferral(NamedTuple):
    """One message to defer. ``keep`` leaves the saved state alone, whatever ``state`` says.
    ``waited``: milliseconds from the claim to the handler's start. The traceback is kept if the
    message becomes a dead letter."""

    id: int
    fence: int
    delay: timedelta | None
    at: datetime | None
    keep: bool
    state: bytes | None
    state_type: str | None
    reason: str | None
    error_type: str | None
    error: str | None
    waited: int | None = None
    traceback: str | None = None


class Failure(NamedTuple):
    """One message to make a dead letter. ``waited``: as in Deferral."""

    id: int
    fence: int
    reason: str
    error_type: str | None
    error: str | None
    waited: int | None = None
    traceback: str | None = None


class Extension(NamedTuple):
    """One lease to extend to ``length`` from now."""

    id: int
    fence: int
    length: timedelta


class Return(NamedTuple):
    """One message to give back, now or after ``delay``."""

    id: int
    fence: int
    delay: timedelta | None


class KeptResult(NamedTuple):
    """What is kept of a message that ends, and for how long; no payload: only how it ended."""

    keep: timedelta
    content_type: str | None = None
    payload: bytes | None = None


Results = Mapping[tuple[int, int], KeptResult]
"""By message id and fence."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a handler says it is: a ``share`` from 0 to 1, a ``note``, or both, and when the
    database learnt of it."""

    share: float | None
    note: str | None
    at: datetime
    fence: int


class ProgressNote(NamedTuple):
    """What a holder says about its message; stored if it still holds the lease."""

    id: int
    fence: int
    share: float | None
    note: str | None


class HeldLease(NamedTuple):
    """A lease: which message, and the fence that proves it is ours."""

    id: int
    fence: int
