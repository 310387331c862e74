"""The demo's results, computed from the history, and the report at its end: what its workers just
did, after some made-up days.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from laneway import HistoryEntry, Queue
from laneway.extras import needs
from laneway.lake import Lake

from .tenants import group_of

_CLOCK = 1e-3  # seconds; the coarsest clock of an engine


@dataclass(frozen=True, slots=True)
class Results:
    completed: int
    dead: int
    twice: int
    expired: dict[str, int]
    redelivered: int
    most_at_once: int
    rate_excess: float
    first_starts: dict[str, int]


class HistoryReader:
    """Reads the history page by page as it grows."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._position = queue.history_since().position
        self.entries: list[HistoryEntry] = []

    def read(self) -> None:
        while True:
            page = self._queue.history_since(self._position)
            self._position = page.position
            self.entries += page.entries
            if not page.entries:
                return


def summarize(entries: Sequence[HistoryEntry], window: int, rate: float, burst: int) -> Results:
    done = [entry for entry in entries if entry.outcome == "completed"]
    started = sorted(
        (entry for entry in entries if entry.claimed_at is not None),
        key=lambda entry: (entry.claimed_at, entry.fence, entry.id),
    )
    # First attempts only: later ones follow from the faults, not from fairness.
    fresh = [entry for entry in started if entry.attempt == 1]
    return Results(
        completed=len(done),
        dead=sum(entry.dead for entry in entries),
        twice=len(done) - len({entry.message_id for entry in done}),
        expired=Counter(e.worker or "" for e in entries if e.outcome == "expired"),
        redelivered=sum(entry.attempt > 1 for entry in done),
        most_at_once=most_at_once(e for e in started if e.channel == "limited"),
        rate_excess=rate_excess(_starts(started, "rated"), rate, burst),
        first_starts=Counter(group_of(e.channel) for e in fresh[:window]),
    )


def _starts(entries: Iterable[HistoryEntry], channel: str) -> list[datetime]:
    return [e.claimed_at for e in entries if e.channel == channel and e.claimed_at is not None]


def most_at_once(entries: Iterable[HistoryEntry]) -> int:
    """The most leases held at one moment; a lease that ends at a moment no longer counts."""
    changes = [
        change
        for entry in entries
        for change in ((entry.claimed_at, 1), (entry.ended_at, -1))
        if change[0] is not None
    ]
    held = most = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


def rate_excess(starts: Sequence[datetime], rate: float, burst: int) -> float:
    """By how many starts any window held more than ``burst + window * rate``; 0 if none did."""
    times = [moment.timestamp() for moment in starts]
    return max(
        (
            (last - first + 1) - (burst + (times[last] - times[first] + _CLOCK) * rate)
            for first in range(len(times))
            for last in range(first, len(times))
        ),
        default=0.0,
    )


_DAYS, _MESSAGES = 8, 25_000


def demo_report(
    url: str,
    schema: str = "laneway",
    root: str | Path = "lake",
    *,
    days: float = _DAYS,
    messages: int = _MESSAGES,
) -> str:
    """Syncs and verifies the queue's history, makes up the ``days`` before it, and returns the path
    of the report's page. The page says which rows are real. Nothing is purged."""
    _check_installed("pyarrow", "numpy")
    lake = Lake(url, root, schema=schema)
    synced = lake.sync()
    damaged = lake.verify().damaged
    begun = _first_start(lake) or datetime.now(UTC)
    _make_up(lake, begun, days, messages)
    note = (
        f"{synced.rows:,} rows are real: those in the queue “default” since {begun:%H:%M:%S} UTC, "
        f"which the demo's workers just did. The {days:g} days before and the other queues are "
        "made up, so that there is something to compare with."
    )
    if damaged:
        note += f" {len(damaged)} files are damaged!"
    return lake.report(note=note).page


def attempts_by_outcome(url: str, schema: str = "laneway") -> dict[str, int]:
    """The same history, read and counted by Spark."""
    _check_installed("pyspark")
    from laneway.spark.environment import quick_java, session

    spark = session("demo", settings={**quick_java(), "spark.sql.shuffle.partitions": "1"})
    history = spark.read.format("laneway").option("url", url).option("schema", schema)
    counted = history.option("what", "history").load().groupBy("outcome").count()
    return {row["outcome"]: row["count"] for row in counted.orderBy("outcome").collect()}


def _check_installed(*modules: str) -> None:
    for name in modules:
        with needs("A report", name, "lake"):
            import_module(name)


def _first_start(lake: Lake) -> datetime | None:
    """When the first message of the real history was published."""
    times: list[Any] = [
        lake.folder.least(file.path, "first_published_at") for file in lake.folder.history_files()
    ]
    return min((at.astimezone(UTC) for at in times if at is not None), default=None)


def _make_up(lake: Lake, until: datetime, days: float, messages: int) -> None:
    from laneway.lake.owner import MADE_UP
    from laneway.lake.synth import synthesize
    from laneway.lake.synth.history import write_lake

    made_up = synthesize(messages, until=until - timedelta(seconds=1), days=days, calm=True)
    write_lake(made_up, lake.folder, batch=MADE_UP, live=False)
