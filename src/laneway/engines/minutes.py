"""Figures per minute and hour, queue and kind, added up from rows of the history."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from laneway.operations import WAIT_BOUNDS

from .times import HOUR, SECOND

MINUTE = 60 * SECOND
SPANS = {1: MINUTE, 60: HOUR}
"""Figures are kept by minute, and by hour for long steps."""
_BUCKETS = len(WAIT_BOUNDS) + 1
_BOUNDS = [round(bound * SECOND) for bound in WAIT_BOUNDS]

OUTCOMES = (
    "completed",
    "retried",
    "failed",
    "expired",
    "deferred",
    "given_back",
    "cancelled",
    "lapsed",
    "redriven",
    "discarded",
)
"""How an attempt or a message ends; an entry that has claimed_at is an attempt."""
COUNTS = ("published", "started", *OUTCOMES, "dead")
_PLACE = {name: place for place, name in enumerate(COUNTS)}
_PUBLISHED, _STARTED, _DEAD = _PLACE["published"], _PLACE["started"], _PLACE["dead"]
WAITS = slice(len(COUNTS), len(COUNTS) + _BUCKETS)
RUNS = slice(WAITS.stop, WAITS.stop + _BUCKETS)


def bucket(length: int) -> int:
    """The place of a time in microseconds among WAIT_BOUNDS, each of which belongs to the bucket
    below it."""
    return bisect_left(_BOUNDS, length)


class MinuteFigures:
    """COUNTS, then the histograms of wait and of run times, by span, its beginning, queue, kind."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int, str, str], list[int]] = {}

    def add_ended(self, rows: Iterable[Sequence[Any]]) -> None:
        """Of history entries: queue, kind, outcome, dead, due, published_at, claimed_at, started_at
        (null: when it was claimed), ended_at."""
        for queue, kind, outcome, dead, due, published, claimed, started, ended in rows:
            if outcome not in OUTCOMES:
                continue
            changes = [_PLACE[outcome]]
            if dead:
                changes.append(_DEAD)
            if claimed is not None:
                began = claimed if started is None else started
                changes.append(WAITS.start + bucket(began - max(due, published)))
                changes.append(RUNS.start + bucket(ended - began))
                self._add(claimed, queue, kind, [_STARTED])
            self._add(ended, queue, kind, changes)

    def add_published(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of minute, queue, kind and how many were published."""
        for minute, queue, kind, count in rows:
            self._add(minute, queue, kind, [_PUBLISHED], count)

    def rows(self) -> list[tuple[Any, ...]]:
        return [(*key, *figures) for key, figures in sorted(self._rows.items())]

    def _add(self, at: int, queue: str, kind: str, places: Sequence[int], more: int = 1) -> None:
        for span, length in SPANS.items():
            key = (span, at - at % length, queue, kind)
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = [0] * RUNS.stop
            for place in places:
                row[place] += more
