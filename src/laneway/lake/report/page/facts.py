"""The report's tables as Python rows, and what the page needs of them."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

from laneway.lake.folder import LIVE_NUMBERS, LIVE_ROWS, Folder
from laneway.lake.report.build import TABLES
from laneway.lake.report.tables import Objective

Row = dict[str, Any]
SHOWN = timedelta(days=14)


class Facts:
    """Reads each table once, when it is first used."""

    def __init__(self, folder: Folder, objective: Objective, seen_at: datetime | None) -> None:
        self._folder = folder
        self.objective = objective
        self._rows: dict[str, list[Row]] = {}
        self._seen_at = seen_at

    def rows(self, table: str) -> list[Row]:
        if table not in self._rows:
            self._rows[table] = self._folder.read_rows(f"{TABLES}/{table}")
        return self._rows[table]

    def given(self, tables: dict[str, list[Row]]) -> None:
        """Uses these rows instead of reading them."""
        self._rows |= tables

    @cached_property
    def empty(self) -> bool:
        return not self.rows("hours")

    def unstarted(self) -> tuple[int, float]:
        """How many messages are waiting, and the seconds that the oldest has waited, in a lake
        without history."""
        live = self._folder.read_table(LIVE_ROWS, ["state", "due", "seen_at"])
        rows = [row for row in live.to_pylist() if row["state"] == "waiting" and row["due"]]
        ages = [(row["seen_at"] - row["due"]).total_seconds() for row in rows]
        return len(rows), max(ages, default=0.0)

    @cached_property
    def now(self) -> datetime:
        if self._seen_at is not None:
            return self._seen_at.astimezone(UTC)
        hours = [row["hour"] for row in self.rows("hours")]
        return max(hours).astimezone(UTC) + timedelta(hours=1) if hours else datetime.now(UTC)

    @cached_property
    def first_day(self) -> date | None:
        return min((row["day"] for row in self.rows("hours")), default=None)

    @cached_property
    def queues(self) -> list[str]:
        """The busiest first."""
        count: dict[str, int] = defaultdict(int)
        for row in self.hours:
            count[row["queue"]] += row["started"]
        return sorted(count, key=lambda queue: (-count[queue], queue))

    @cached_property
    def hours(self) -> list[Row]:
        return self._recent("hours", "hour")

    @cached_property
    def fairness(self) -> list[Row]:
        return self._recent("fairness", "hour")

    @cached_property
    def percentiles(self) -> list[Row]:
        hourly = [row for row in self.rows("percentiles") if row["grain"] == "hour"]
        return [row for row in hourly if row["hour"] >= self.now - SHOWN]

    @cached_property
    def live_counts(self) -> dict[str, dict[str, int]]:
        snapshot = self._folder.read_json(LIVE_NUMBERS)
        counts: dict[str, dict[str, int]] = snapshot["numbers"] if snapshot else {}
        return counts

    def timeline(self) -> list[datetime]:
        """The hours of the page's plots; the last one is not over yet."""
        start = min(row["hour"] for row in self.hours)
        end = self.now.replace(minute=0, second=0, microsecond=0)
        count = max(int((end - start) / timedelta(hours=1)), 0)
        return [start + timedelta(hours=n) for n in range(count + 1)]

    def by_hour(
        self, rows: Iterable[Row], queue: str, column: str, gap: float | None = 0.0
    ) -> list[float | None]:
        """A queue's column over the timeline; ``gap`` for hours without a value."""
        known = {row["hour"]: row[column] for row in rows if row["queue"] == queue}
        return [known.get(hour, gap) for hour in self.timeline()]

    def _recent(self, table: str, column: str) -> list[Row]:
        return [row for row in self.rows(table) if row[column] >= self.now - SHOWN]
