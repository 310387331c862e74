"""What becomes of a schedule: pure decisions that every engine shares. The engine reads the rows
under a lock, asks here, publishes, and writes the moves, all in one transaction.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from .cron import last_tick, next_tick, ticks
from .errors import DriverMissing, InvalidSchedule
from .model import Draft
from .schedule import SCHEDULE_HEADER, TICK_HEADER, Move, Schedule, ScheduleTerms

MOST_TICKS = 1000
"""How many missed ticks of one schedule are fired in one transaction."""
TRY_AGAIN = timedelta(seconds=10)
"""When a schedule that could not fire is looked at again."""

_TERMS = [field.name for field in fields(ScheduleTerms)]
_TIMING = ("cron", "every", "zone", "start")


def planned(terms: ScheduleTerms, stored: Schedule | None, now: datetime) -> Schedule | None:
    """The schedule that the terms make of what is stored; None if they change nothing.

    New times count from now. Other changes leave the next tick alone, and a paused schedule stays
    paused.
    """
    if stored is None:
        return _timed(terms, now, paused=False)
    wanted = {name: getattr(terms, name) for name in _TERMS}
    if all(getattr(stored, name) == wanted[name] for name in _TERMS):
        return None
    if any(getattr(stored, name) != wanted[name] for name in _TIMING):
        fresh = _timed(terms, now, paused=stored.paused)
        return replace(fresh, last_at=stored.last_at, fired=stored.fired)
    look_at = None if stored.paused else stored.next_at
    return replace(stored, **wanted, look_at=look_at, error=None)


def paused(stored: Schedule) -> Schedule:
    return replace(stored, paused=True, look_at=None)


def resumed(stored: Schedule, now: datetime) -> Schedule:
    """What ticked meanwhile is skipped: a pause is meant, a breakdown is not."""
    tick = stored.next_at
    if tick <= now:
        tick = next_tick(stored, stored.anchor, now)
    return replace(stored, paused=False, next_at=tick, look_at=tick, error=None)


def _timed(terms: ScheduleTerms, now: datetime, *, paused: bool) -> Schedule:
    anchor = terms.start or now
    tick = next_tick(terms, anchor, now)
    look_at = None if paused else tick
    wanted = {name: getattr(terms, name) for name in _TERMS}
    return Schedule(
        **wanted,
        anchor=anchor,
        paused=paused,
        next_at=tick,
        look_at=look_at,
        last_at=None,
        fired=0,
        error=None,
        revision=0,
    )


@dataclass(frozen=True, slots=True)
class Firing:
    """The ticks of one schedule that fire now, and where it goes from there."""

    schedule: Schedule
    ticks: Sequence[datetime]
    next_at: datetime
    error: str | None = None

    @property
    def drafts(self) -> list[Draft]:
        return [draft_of(self.schedule, tick) for tick in self.ticks]

    def move(self, taken: Sequence[bool], now: datetime) -> Move:
        """After publishing; ``taken`` says for each tick whether it found a place.

        The first tick that was refused is the next one, a little later.
        """
        done = taken.index(False) if False in taken else len(taken)
        refused = done < len(self.ticks)
        error = self.error
        if refused:
            error = f"refused: channel {self.schedule.channel!r} is full or being removed"
        next_at = self.ticks[done] if refused else self.next_at
        return Move(
            self.schedule.queue,
            self.schedule.name,
            self.schedule.revision,
            self.schedule.next_at,
            next_at,
            next_at if error is None else now + TRY_AGAIN,
            self.ticks[done - 1] if done else self.schedule.last_at,
            done,
            error,
        )


def firing(schedule: Schedule, now: datetime) -> Firing:
    """Decides by the catch-up policy. A schedule whose ticks cannot be computed here and now keeps
    its tick and gets the error."""
    try:
        if schedule.catch_up == "all":
            return _fire_all(schedule, now)
        return _fire_last(schedule, now)
    except (InvalidSchedule, DriverMissing) as error:
        return Firing(schedule, (), schedule.next_at, str(error))


def _fire_all(schedule: Schedule, now: datetime) -> Firing:
    first = schedule.next_at
    due = [first]
    for tick in ticks(schedule, schedule.anchor, first):
        if tick > now or len(due) == MOST_TICKS:
            return Firing(schedule, due, tick)
        due.append(tick)
    raise AssertionError("ticks never end")


def _fire_last(schedule: Schedule, now: datetime) -> Firing:
    last = last_tick(schedule, schedule.anchor, schedule.next_at, now)
    following = next_tick(schedule, schedule.anchor, now)
    late = now - last > schedule.grace
    if schedule.catch_up == "skip" and late:
        return Firing(schedule, (), following)
    return Firing(schedule, [last], following)


def draft_of(schedule: Schedule, tick: datetime) -> Draft:
    """The message of one tick; its headers say which."""
    headers = {
        **schedule.headers,
        SCHEDULE_HEADER: schedule.name,
        TICK_HEADER: tick.isoformat(),
    }
    return Draft(
        payload=schedule.payload,
        queue=schedule.queue,
        channel=schedule.channel,
        kind=schedule.kind,
        content_type=schedule.content_type,
        headers=json.dumps(headers),
        key=schedule.key,
        key_window=schedule.key_window,
        priority=schedule.priority,
        delay=None,
        at=None,
        expires_in=schedule.expires_in,
        expires_at=None,
        max_attempts=schedule.max_attempts,
        key_scope=None if schedule.key_scope == "kind" else schedule.key_scope,
    )
