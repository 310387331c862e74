"""Data types of the operator's view: minutes, workers, pauses, the audit, bulk operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from .model import DeadLetter

WAIT_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0)
"""Upper bounds in seconds of the buckets of wait and run times; a last bucket has no bound."""
SEEN_EVERY = timedelta(seconds=10)
"""How often a worker says that it is alive."""
VANISHED_AFTER = timedelta(seconds=30)
FORGOTTEN_AFTER = timedelta(days=1)
"""When upkeep deletes a worker that has vanished."""
NO_TIMES = (0,) * (len(WAIT_BOUNDS) + 1)


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened in one minute (or step), of one queue and kind (or of several, added up).

    ``started`` counts attempts that have ended, by the time of their claim; the others count by the
    time they happened. An attempt ends as one of completed, retried, failed, expired, deferred and
    given_back; ``dead`` counts those that made a dead letter, also after a retry or an expired
    lease. cancelled, lapsed, redriven and discarded are ends and returns without an attempt.
    ``waits`` (from due to claimed) and ``runs`` (from claimed to ended) are counts per bucket of
    WAIT_BOUNDS, of attempts that ended in this minute. ``depth`` (messages that have not ended) and
    ``oldest_due`` (of the queue) are those at its end, None where upkeep did not run. ``exact`` is
    False if the history was not fully kept, so that some of it was not counted.
    """

    at: datetime
    queue: str | None
    kind: str | None
    published: int = 0
    started: int = 0
    completed: int = 0
    retried: int = 0
    failed: int = 0
    expired: int = 0
    deferred: int = 0
    given_back: int = 0
    cancelled: int = 0
    lapsed: int = 0
    redriven: int = 0
    discarded: int = 0
    dead: int = 0
    waits: tuple[int, ...] = NO_TIMES
    runs: tuple[int, ...] = NO_TIMES
    depth: int | None = None
    oldest_due: datetime | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class MinuteFilter:
    """Which minutes are wanted, and how they are added up; None matches all.

    From ``since`` to before ``until``, in steps of whole minutes that begin at multiples of
    ``step`` since 1970. ``by`` keeps queues apart, or queues and kinds. Without ``times`` waits and
    runs are zeros, which is half of the work on PostgreSQL and MySQL.
    """

    since: datetime
    until: datetime
    step: timedelta = timedelta(minutes=1)
    queue: str | None = None
    kind: str | None = None
    by: Literal["queue", "kind"] | None = None
    times: bool = True


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process, as its last heartbeat described it."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    """What it handles; empty if it handles every kind."""
    slots: int
    used: int
    started_at: datetime
    seen_at: datetime
    state: Literal["running", "stopping", "vanished"] = "running"
    """Vanished: not seen for VANISHED_AFTER. It was killed or is frozen, or cannot reach the
    database."""
    name: str = ""
    """What leases and the history call it; several processes may share a name."""

    def handles(self, queue: str, kind: str) -> bool:
        """Whether it is alive and would run a handler for such a message."""
        fits = not self.kinds or kind in self.kinds
        return self.state == "running" and queue in self.queues and fits


@dataclass(frozen=True, slots=True)
class Pause:
    """A whole queue, or one kind of it, that starts nothing until a time or until it is resumed."""

    queue: str
    kind: str | None
    until: datetime | None
    since: datetime
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fairness:
    """By what the channels of a queue take turns: by ``starts``, or by the ``time`` that their
    handlers take. ``turn``: by how much worker time one may get ahead of others."""

    queue: str
    by: Literal["starts", "time"]
    turn: timedelta | None = None
    since: datetime | None = None


Source = Literal["api", "cli", "dashboard"]


class AuditNote(NamedTuple):
    """What is about to enter the audit; ``target`` is JSON: what was named, or the filter."""

    actor: str
    source: Source
    action: str
    target: Mapping[str, Any]
    affected: int | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What an operator did: from where, to what, and to how many."""

    id: int
    at: datetime
    actor: str
    source: Source
    action: str
    target: Mapping[str, Any]
    affected: int | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a bulk operation would take: how many, whether there are more than were counted, and the
    first of them."""

    count: int
    or_more: bool
    sample: Sequence[DeadLetter]


BulkAction = Literal["redrive", "discard"]


class OperationOrder(NamedTuple):
    """A bulk operation to start; ``wanted`` and ``options`` are JSON."""

    action: BulkAction
    wanted: Mapping[str, Any]
    options: Mapping[str, Any]
    total: int | None
    actor: str


OperationState = Literal["running", "done", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Operation:
    """A bulk redrive or discard of dead letters, done in parts by upkeep and by whoever waits.
    ``total`` is None if the letters were too many to count when it began."""

    id: int
    action: BulkAction
    wanted: Mapping[str, Any]
    total: int | None
    done: int
    state: OperationState
    actor: str
    started_at: datetime
    ended_at: datetime | None = None
    error: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
