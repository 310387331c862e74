"""Every metric of the exporter, its name, labels and meaning, which the reference lists too; and
counters that rise by what the minute figures have gained since the last read.

A channel is never a label: there may be a million of them. Upkeep counts minutes late, because it
waits for open transactions, so each read looks at the last minutes again.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from laneway.operations import NO_TIMES, Minute

Type = Literal["gauge", "counter", "histogram"]


class MetricInfo(NamedTuple):
    """``name`` is the one in queries, without the suffixes of a histogram."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str


_QUEUE = ("queue",)
_KIND = ("queue", "kind")
_LIMIT = ("limit",)

METRICS = (
    MetricInfo("laneway_up", "gauge", (), "1 if the last read of the database worked, else 0"),
    MetricInfo("laneway_snapshot_age_seconds", "gauge", (), "Age of the numbers that are shown"),
    MetricInfo("laneway_read_seconds", "gauge", (), "How long the last read of the database took"),
    MetricInfo("laneway_schema_version", "gauge", (), "Number of the schema's last migration"),
    MetricInfo("laneway_schema_version_needed", "gauge", (), "The number that this version needs"),
    MetricInfo(
        "laneway_messages",
        "gauge",
        ("queue", "state"),
        "Messages by state: waiting, scheduled, leased or dead",
    ),
    MetricInfo(
        "laneway_messages_exact",
        "gauge",
        _QUEUE,
        "1 if laneway_messages is exact, 0 if it is about right because very many wait",
    ),
    MetricInfo(
        "laneway_oldest_seconds",
        "gauge",
        _QUEUE,
        "For how long the oldest waiting message has been due; 0 if none waits",
    ),
    MetricInfo("laneway_channels", "gauge", _QUEUE, "Channels that hold messages"),
    MetricInfo(
        "laneway_channels_blocked",
        "gauge",
        ("queue", "reason"),
        "Channels whose messages wait for a pause or a limit, of the 1,000 fullest limited ones",
    ),
    MetricInfo("laneway_limit_running", "gauge", _LIMIT, "Messages that run behind a shared limit"),
    MetricInfo(
        "laneway_limit_waiting",
        "gauge",
        _LIMIT,
        "Messages that wait for a shared limit, counted to 10,000; of the first 100 limits by name",
    ),
    MetricInfo(
        "laneway_limit_in_force",
        "gauge",
        _LIMIT,
        "How many may run at once behind a shared limit now; none if any number may",
    ),
    MetricInfo(
        "laneway_limit_breaker",
        "gauge",
        ("limit", "state"),
        "1 for the state in which the breaker of a shared limit is: closed, open or probing",
    ),
    MetricInfo("laneway_workers", "gauge", ("state",), "Worker processes by state"),
    MetricInfo("laneway_queue_workers", "gauge", _QUEUE, "Running workers that serve the queue"),
    MetricInfo("laneway_worker_slots", "gauge", (), "Handlers that running workers could run"),
    MetricInfo("laneway_worker_slots_used", "gauge", (), "Handlers that run in them"),
    MetricInfo("laneway_published_total", "counter", _KIND, "Messages published"),
    MetricInfo(
        "laneway_started_total", "counter", _KIND, "Attempts that have ended, by their start"
    ),
    MetricInfo(
        "laneway_ended_total",
        "counter",
        ("queue", "kind", "outcome"),
        "Ends by outcome: completed, retried, failed, expired, deferred, given_back, cancelled, "
        "lapsed, discarded",
    ),
    MetricInfo("laneway_dead_total", "counter", _KIND, "Messages that became dead letters"),
    MetricInfo("laneway_redriven_total", "counter", _KIND, "Dead letters that were redriven"),
    MetricInfo("laneway_wait_seconds", "histogram", _KIND, "From due to claimed, by attempt"),
    MetricInfo("laneway_run_seconds", "histogram", _KIND, "From claimed to ended, by attempt"),
    MetricInfo(
        "laneway_minutes_exact",
        "gauge",
        (),
        "1 if all that ended was counted, 0 if the history is not fully kept",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

OUTCOMES = (
    "completed",
    "retried",
    "failed",
    "expired",
    "deferred",
    "given_back",
    "cancelled",
    "lapsed",
    "discarded",
)


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
