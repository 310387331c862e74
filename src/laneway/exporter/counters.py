"""Counters that rise by what the minute figures have gained since the last read.

Upkeep counts minutes late, because it waits for open transactions, so each read looks at the last
half hour again. Counters begin at zero with the exporter, which Prometheus takes for a restart.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from laneway.operations import NO_TIMES, Minute

from .families import OUTCOMES

WINDOW = timedelta(minutes=30)
MOST_KINDS = 500
"""Pairs of queue and kind with counters of their own; a publisher could make up kinds."""
OTHER = "(other)"

Place = tuple[str, str]
"""Queue and kind."""


@dataclass(slots=True)
class Counts:
    """What was counted for one queue and kind."""

    published: int = 0
    started: int = 0
    dead: int = 0
    redriven: int = 0
    ended: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    waits: list[int] = field(default_factory=lambda: list(NO_TIMES))
    runs: list[int] = field(default_factory=lambda: list(NO_TIMES))


class Counters:
    """Of one exporter, from its start."""

    def __init__(self) -> None:
        self._seen: dict[tuple[datetime, Place], tuple[int, ...]] = {}
        self._begun = False
        self.places: dict[Place, Counts] = defaultdict(Counts)
        self.exact = True

    def add(self, minutes: Iterable[Minute]) -> None:
        """Takes the minutes of the last WINDOW; the first ones are only where counting begins.

        A new place is shown with zeros first, and counted by the next read: Prometheus takes the
        first value of a series for where it begins.
        """
        seen: dict[tuple[datetime, Place], tuple[int, ...]] = {}
        known = set(self.places)
        self.exact = True
        for minute in minutes:
            self.exact = self.exact and minute.exact
            found = minute.queue or "", minute.kind or ""
            place = self._shown_as(found)
            counts, now = self.places[place], _numbers(minute)
            if not self._begun:
                seen[minute.at, found] = now
            elif place in known:
                before = self._seen.get((minute.at, found), (0,) * len(now))
                _increase(counts, before, now)
                seen[minute.at, found] = tuple(map(max, before, now))
        self._seen = seen
        self._begun = True

    def _shown_as(self, place: Place) -> Place:
        has_room = place in self.places or len(self.places) < MOST_KINDS
        return place if has_room else (place[0], OTHER)


def _numbers(minute: Minute) -> tuple[int, ...]:
    ended = (getattr(minute, outcome) for outcome in OUTCOMES)
    waits, runs = minute.waits or NO_TIMES, minute.runs or NO_TIMES
    heads = minute.published, minute.started, minute.dead, minute.redriven
    return (*heads, *ended, *waits, *runs)


def _increase(counts: Counts, before: tuple[int, ...], now: tuple[int, ...]) -> None:
    gains = [max(0, new - old) for old, new in zip(before, now, strict=True)]
    counts.published += gains[0]
    counts.started += gains[1]
    counts.dead += gains[2]
    counts.redriven += gains[3]
    at = 4
    for outcome in OUTCOMES:
        counts.ended[outcome] += gains[at]
        at += 1
    for buckets in (counts.waits, counts.runs):
        for index in range(len(buckets)):
            buckets[index] += gains[at]
            at += 1
