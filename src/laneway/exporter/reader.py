"""Reads the database for all who scrape: one read at a time, shared, and never waited for long. A
read is a few bounded looks, whatever the backlog.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass
from datetime import datetime, timedelta

from laneway.client.sync.queue import Queue
from laneway.model import QueueStats
from laneway.operations import Minute, WorkerInfo
from laneway.shared_limits import SharedLimit

from .counters import WINDOW

_MOST_CHANNELS = 1000
_MOST_QUEUES = 1000
_MOST_WORKERS = 10_000
_MOST_LIMITS = 100
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: datetime
    version: int
    version_needed: int
    queues: list[QueueStats]
    blocked: dict[tuple[str, str], int]
    workers: list[WorkerInfo]
    minutes: list[Minute]
    limits: Sequence[SharedLimit] = ()


def read_snapshot(queue: Queue) -> Snapshot:
    at = queue.clock()
    since = at.replace(second=0, microsecond=0) - WINDOW
    return Snapshot(
        at,
        queue.schema_version(),
        queue.database.engine.schema.newest_version,
        queue.stats()[:_MOST_QUEUES],
        _blocked(queue),
        queue.workers(limit=_MOST_WORKERS),
        queue.minutes(since=since, until=at + _MINUTE, by="kind"),
        queue.limits.list()[:_MOST_LIMITS],
    )


def _blocked(queue: Queue) -> dict[tuple[str, str], int]:
    """How many channels have messages that may not start, by queue and reason."""
    found = queue.channels(limited=True, limit=_MOST_CHANNELS)
    return Counter(
        (info.queue, _reason(info.waits_for))
        for info in found
        if info.waits_for is not None and info.stats.waiting
    )


def _reason(waits_for: str) -> str:
    """Without the limit's name and numbers, which would make a series each."""
    word = waits_for.split()[0]
    return word if word in ("limit", "time") else waits_for


_log = logging.getLogger("laneway.exporter")


@dataclass(frozen=True, slots=True)
class Reading:
    """The last snapshot, if there is one, and whether the newest read worked."""

    snapshot: Snapshot | None
    age: float
    seconds: float
    problem: str | None


class SnapshotReader:
    """``max_age``: how old an answer may be that is given again. ``timeout``: for how long a caller
    waits; a read that takes longer goes on, alone, and its result is for later callers."""

    def __init__(self, read: Callable[[], Snapshot], max_age: float, timeout: float) -> None:
        self._read = read
        self._max_age = max_age
        self._timeout = timeout
        self._lock = threading.Lock()
        self._flight: Future[None] | None = None
        self._snapshot: Snapshot | None = None
        self._read_at = 0.0
        self._seconds = 0.0
        self._ended_at = 0.0
        self._problem: str | None = "nothing was read yet"

    def get(self) -> Reading:
        flight = self._begin()
        problem = None
        if flight is not None:
            try:
                flight.result(self._timeout)
            except TimeoutError:
                problem = f"the database does not answer: nothing within {self._timeout:g} s"
                _log.warning("%s", problem)
        with self._lock:
            age = 0.0 if self._snapshot is None else time.monotonic() - self._read_at
            return Reading(self._snapshot, age, self._seconds, problem or self._problem)

    def _begin(self) -> Future[None] | None:
        """The read to wait for; None if the last one is new enough."""
        with self._lock:
            if self._flight is not None:
                return self._flight
            if self._ended_at and time.monotonic() - self._ended_at < self._max_age:
                return None
            flight = self._flight = Future()
            # A daemon: a database that never answers must not keep the process from ending.
            threading.Thread(target=self._fly, args=(flight,), daemon=True).start()
            return flight

    def _fly(self, flight: "Future[None]") -> None:
        begun = time.monotonic()
        problem, found = None, None
        try:
            found = self._read()
        except Exception as error:  # of any driver
            problem = str(error) or type(error).__name__
            _log.warning("cannot read the database: %s", problem)
        with self._lock:
            self._ended_at = time.monotonic()
            self._seconds = self._ended_at - begun
            self._problem = problem
            if found is not None:
                self._snapshot, self._read_at = found, self._ended_at
            self._flight = None
        flight.set_result(None)
