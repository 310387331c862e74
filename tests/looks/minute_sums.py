"""Minutes out of history entries, in Python: what the engines' own figures are compared with."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from laneway.engines.minutes import OUTCOMES
from laneway.model import HistoryEntry
from laneway.operations import NO_TIMES, WAIT_BOUNDS, Minute, MinuteFilter

ATTEMPTS = ("completed", "retried", "failed", "expired", "deferred", "given_back")
"""Outcomes of an attempt; the others are ends and returns without one."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Group = tuple[datetime, str | None, str | None]


@dataclass(slots=True)
class MinuteSum:
    """What is added up for one step, queue and kind."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    waits: list[int] = field(default_factory=lambda: list(NO_TIMES))
    runs: list[int] = field(default_factory=lambda: list(NO_TIMES))

    def minute(self, group: Group) -> Minute:
        at, queue, kind = group
        counts: Any = self.counts | {"waits": tuple(self.waits), "runs": tuple(self.runs)}
        return Minute(at, queue, kind, **counts)


def step_of(at: datetime, step: timedelta) -> datetime:
    """The beginning of the step that ``at`` lies in."""
    return _EPOCH + (at - _EPOCH) // step * step


def bucket(length: timedelta) -> int:
    """The place of a time among WAIT_BOUNDS, which belong to the bucket below them."""
    return bisect_left(WAIT_BOUNDS, max(0.0, length.total_seconds()))


def count_minutes(
    wanted: MinuteFilter,
    entries: Iterable[HistoryEntry],
    published: Iterable[tuple[str, str, datetime]],
) -> list[Minute]:
    """``published``: queue, kind and time of each message that was published."""
    sums: dict[Group, MinuteSum] = defaultdict(MinuteSum)
    for queue, kind, at in published:
        _count(sums, wanted, queue, kind, at, "published")
    for entry in entries:
        if entry.outcome not in OUTCOMES:
            continue
        names = entry.queue, entry.kind
        found = _count(sums, wanted, *names, entry.ended_at, entry.outcome)
        if entry.dead:
            _count(sums, wanted, *names, entry.ended_at, "dead")
        if entry.outcome in ATTEMPTS and entry.claimed_at is not None:
            _count(sums, wanted, *names, entry.claimed_at, "started")
            if found is not None:
                _add_times(found, entry, entry.claimed_at)
    return [sums[group].minute(group) for group in sorted(sums, key=str)]


def _add_times(found: MinuteSum, entry: HistoryEntry, claimed_at: datetime) -> None:
    begins = [at for at in (entry.due, entry.published_at) if at is not None]
    found.waits[bucket(claimed_at - max(begins, default=claimed_at))] += 1
    found.runs[bucket(entry.ended_at - claimed_at)] += 1


def _count(
    sums: dict[Group, MinuteSum],
    wanted: MinuteFilter,
    queue: str,
    kind: str,
    at: datetime,
    what: str,
) -> MinuteSum | None:
    if wanted.queue not in (None, queue) or wanted.kind not in (None, kind):
        return None
    step = step_of(at, wanted.step)
    if not step_of(wanted.since, wanted.step) <= step < wanted.until:
        return None
    group = (
        step,
        queue if wanted.by is not None else wanted.queue,
        kind if wanted.by == "kind" else wanted.kind,
    )
    sums[group].counts[what] += 1
    return sums[group]
