"""From minutes to what a page shows: rates, ratios, percentiles, lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from laneway.operations import WAIT_BOUNDS, Minute

LATELY = timedelta(minutes=5)
_MINUTE = timedelta(minutes=1)
_SHORTEST = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class RecentFigures:
    """The last five whole minutes; rates are per minute, times upper bounds in seconds."""

    published: float = 0.0
    completed: float = 0.0
    troubled: float = 0.0
    failure_ratio: float | None = None
    wait_median: float | None = None
    wait_95: float | None = None
    run_median: float | None = None
    run_95: float | None = None
    exact: bool = True
    depth: int | None = None
    """Messages that had not ended at the end of the last minute that knows it."""


def lately(minutes: Iterable[Minute], now: datetime) -> RecentFigures:
    """What has begun is left out: half a minute would look like half the rate."""
    end = now.replace(second=0, microsecond=0)
    known = sorted(minutes, key=lambda row: row.at)
    rows = [row for row in known if end - LATELY <= row.at < end]
    if not rows:
        rows = [row for row in known if row.at >= end]
    if not rows:
        return RecentFigures()
    count = max(1.0, min(LATELY, now - min(row.at for row in rows)) / _MINUTE)
    completed = sum(row.completed for row in rows)
    troubled = sum(row.retried + row.failed + row.expired for row in rows)
    ended = completed + troubled
    exact = all(row.exact for row in rows)
    waits = added(row.waits for row in rows)
    runs = added(row.runs for row in rows)
    return RecentFigures(
        sum(row.published for row in rows) / count,
        completed / count,
        troubled / count,
        troubled / ended if ended and exact else None,  # without all ends the share is not known
        percentile(waits, 0.5),
        percentile(waits, 0.95),
        percentile(runs, 0.5),
        percentile(runs, 0.95),
        exact,
        next((row.depth for row in reversed(rows) if row.depth is not None), None),
    )


def whole_minutes(minutes: Sequence[Minute], now: datetime) -> Sequence[Minute]:
    """Without the one under way, at the end of which every line would seem to fall; as they are if
    there are no others."""
    end = now.replace(second=0, microsecond=0)
    whole = [row for row in minutes if row.at < end]
    return whole if len(whole) > 1 else minutes


def added(histograms: Iterable[Sequence[int]]) -> list[int]:
    return [sum(counts) for counts in zip(*histograms, strict=False)]


def percentile(counts: Sequence[int], part: float) -> float | None:
    """The bound of the bucket that it falls into; infinite beyond the last, None of nothing."""
    total = sum(counts)
    if not total:
        return None
    reached = 0
    for bound, count in zip((*WAIT_BOUNDS, float("inf")), counts, strict=False):
        reached += count
        if reached >= total * part:
            return bound
    return float("inf")


def chart(minutes: Iterable[Minute], lines: dict[str, str], since: datetime) -> dict[str, Any]:
    """Lines by the minute with zeros where nothing happened, for the browser's chart and for the
    drawing without scripts. ``lines`` are field and name, several fields joined by a plus."""
    rows = {row.at.astimezone(UTC): row for row in minutes}
    first = since.astimezone(UTC).replace(second=0, microsecond=0)
    last = max(rows, default=first)
    if rows:  # a schema that is younger begins where it began, to fill the chart
        first = max(first, min(min(rows) - _MINUTE, last - _SHORTEST))
    count = min(int((last - first) / _MINUTE) + 1, 180)
    times = [first + _MINUTE * n for n in range(max(count, 0))]
    drawn = []
    for fields, name in lines.items():
        values = [_value(rows.get(at), fields.split("+")) for at in times]
        known = [value for value in values if value is not None]
        drawn.append({"name": name, "values": values, "path": sparkline(known)})
    return {"at": [at.timestamp() for at in times], "lines": drawn}


def sparkline(values: Sequence[float], width: float = 100, height: float = 30) -> str:
    """Points of an SVG polyline, from the bottom of the box to its top."""
    if len(values) < 2:
        return ""
    most, step = max(*values, 1e-9), width / (len(values) - 1)
    points = (
        (n * step, height - value / most * (height - 2) - 1) for n, value in enumerate(values)
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _value(row: Minute | None, fields: Sequence[str]) -> float | None:
    """None if nobody counted: only the depth can be that."""
    if fields == ["depth"]:
        return None if row is None else row.depth
    return 0.0 if row is None else float(sum(getattr(row, field) for field in fields))
