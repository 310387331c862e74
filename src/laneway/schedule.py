"""Data types of schedules: the definition, the state, and what a firing did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from .model import KeyScope

CatchUp = Literal["skip", "once", "all"]

SCHEDULE_HEADER = "laneway-schedule"
TICK_HEADER = "laneway-tick"


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """The definition of a schedule: when, and which message. Exactly one of ``cron`` and
    ``every`` is set. With a ``topic`` the message goes to its subscribers instead of ``queue``."""

    queue: str
    name: str
    cron: str | None
    every: timedelta | None
    zone: str
    start: datetime | None
    catch_up: CatchUp
    grace: timedelta
    topic: str | None
    channel: str
    kind: str
    key: str | None
    key_window: timedelta | None
    priority: int
    headers: Mapping[str, Any]
    content_type: str
    payload: bytes
    expires_in: timedelta | None
    max_attempts: int
    key_scope: KeyScope


@dataclass(frozen=True, slots=True)
class Schedule(ScheduleTerms):
    """A schedule and its current state.

    ``next_at`` is its next tick, ``last_at`` the last one that was fired, ``fired`` how many
    messages (or rounds to a topic) it made. ``error`` says why it could not fire; it is tried
    again at ``look_at``, which is None while it is paused. ``anchor`` is what intervals are counted
    from. ``revision`` rises with every edit.
    """

    anchor: datetime
    paused: bool
    next_at: datetime
    look_at: datetime | None
    last_at: datetime | None
    fired: int
    error: str | None
    revision: int


class Move(NamedTuple):
    """The state of a schedule after a firing; applied if revision and tick are unchanged."""

    queue: str
    name: str
    revision: int
    tick: datetime
    next_at: datetime
    look_at: datetime
    last_at: datetime | None
    fired: int
    error: str | None


@dataclass(frozen=True, slots=True)
class FireReport:
    """What a firing did: how many messages it published, how many schedules it put aside with an
    error, and when the next tick comes (None: there is no schedule)."""

    fired: int = 0
    put_aside: int = 0
    look_again: timedelta | None = None
