"""What one read of the database brings: a few bounded looks, whatever the backlog."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from laneway.client.sync.queue import Queue
from laneway.model import QueueStats
from laneway.operations import Minute, WorkerInfo

from .counters import WINDOW

_MOST_CHANNELS = 1000
_MOST_QUEUES = 1000
_MOST_WORKERS = 10_000
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


def read_snapshot(queue: Queue) -> Snapshot:
    at = queue.clock()
    since = at.replace(second=0, microsecond=0) - WINDOW
    return Snapshot(
        at,
        queue.schema_version(),
        queue._core.engine.newest_version,
        queue.stats()[:_MOST_QUEUES],
        _blocked(queue),
        queue.workers(limit=_MOST_WORKERS),
        queue.minutes(since=since, until=at + _MINUTE, by="kind"),
    )


def _blocked(queue: Queue) -> dict[tuple[str, str], int]:
    """How many channels have messages that may not start, by queue and reason."""
    found = queue.channels(limited=True, limit=_MOST_CHANNELS)
    return Counter(
        (info.queue, "limit" if info.waits_for.startswith("limit ") else info.waits_for)
        for info in found
        if info.waits_for is not None and info.stats.waiting
    )
