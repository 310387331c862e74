"""Every table of a report against the same numbers from plain SQL over the history.

The SQL is in ``proof/``, written for the tests: it shares nothing with the report's own.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from psycopg import ClientCursor, Connection

from laneway.lake.folder import Folder
from laneway.lake.report.tables import ERROR, GROWTH, Objective

Row = dict[str, Any]
PROOF = Path(__file__).parent / "proof"
_LANE = ("queue", "channel")
_SIGNATURE = ("queue", "kind", "type", "frame", "text")
KEYS: dict[str, tuple[str, ...]] = {
    "flow": ("day", "slot", *_LANE, "kind"),
    "latency": ("day", "slot", *_LANE, "kind", "measure"),
    "lanes": ("day", "slot", *_LANE),
    "tries": ("day", "queue", "kind", "attempt"),
    "failures": ("day", *_SIGNATURE),
    "crashes": ("day", *_LANE, "kind", "message_id"),
    "repeats": ("day", "queue"),
    "tenants": ("day", *_LANE),
    "letters": ("day", "at", "message_id", "event"),
    "percentiles": ("day", "grain", "hour", *_LANE, "kind", "measure"),
    "hours": ("day", "hour", "queue"),
    "fairness": ("day", "hour", "queue"),
    "signatures": _SIGNATURE,
    "redrive": _SIGNATURE,
    "slo": ("queue", "window_hours"),
    "normal": ("queue", "hour", "metric"),
    "forecast": ("queue", "hour"),
    "outlook": ("queue",),
    "recent": _LANE,
}
_BETWEEN = {"flow": ("fact", "period"), "lanes": ("border",), "failures": ("failed",)}
_BETWEEN |= {"normal": ("figure",)}
_SKETCHED = {"p50", "p95", "p99", "quiet_p95"}
_SHARES = {"p50": Decimal("0.5"), "p95": Decimal("0.95"), "p99": Decimal("0.99")}
_EXACT = 1e-9
"""Sums of the same numbers in another order."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``wrong``: the first few rows that differ by more than they may. ``largest``: relative, of
    numbers that are exact; ``sketched``: of percentiles."""

    rows: int
    largest: float
    sketched: float
    wrong: list[str]


def proved(
    connection: Connection[Any], schema: str, now: datetime, objective: Objective
) -> Iterator[tuple[str, list[Row]]]:
    """Each table, computed by the database that holds the history and a table ``live``."""
    cursor = ClientCursor(connection)
    cursor.execute("select set_config('search_path', %s, false)", [f'"{schema}"'])
    cursor.execute("set jit = off; set work_mem = '256MB'; set timezone = 'UTC'")
    given = {"now": now, "objective": objective.wait, "target": objective.share}
    for name in KEYS:
        for step in (*_BETWEEN.get(name, ()), name):
            query = (PROOF / f"{step}.sql").read_text()
            cursor.execute(f"create temp table {step} as {query}", given)
            cursor.execute(f"analyze {step}")
        cursor.execute(f"select * from {name}")  # noqa: S608
        assert cursor.description
        names = [column.name for column in cursor.description]
        yield name, [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def reported(folder: Folder, table: str) -> list[Row]:
    rows = folder.read_rows(f"report/tables/{table}")
    return [_read_sketch(row) for row in rows] if table == "latency" else rows


def difference(table: str, ours: Sequence[Row], theirs: Sequence[Row]) -> Difference:
    keys = KEYS[table]
    mine, other = (_keyed(rows, keys) for rows in (ours, theirs))
    assert len(mine) == len(ours), f"{table} has two rows of one key"
    wrong = [f"only one has {key}" for key in list(mine.keys() ^ other.keys())[:3]]
    largest = sketched = 0.0
    for key in mine.keys() & other.keys():
        assert mine[key].keys() == other[key].keys(), f"{table}: not all columns are compared"
        for column, value in mine[key].items():
            known = other[key][column]
            loose = column in _SKETCHED or _is_of_a_sketch(table, key)
            found = _apart(value, known, _scale(column, other[key]) if loose else 0.0)
            if loose and math.isfinite(found):
                sketched = max(sketched, found)
            else:
                largest = max(largest, found)
            if found > (_allowed(column, mine[key]) if loose else _EXACT):
                wrong.append(f"{key} {column}: {value!r}, should be {known!r}")
    return Difference(len(ours), largest, sketched, wrong)


def _keyed(rows: Sequence[Row], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in rows}


def _apart(one: Any, other: Any, scale: float) -> float:
    """Relative for numbers, to ``scale`` if they are smaller; of other things, nothing or all."""
    if isinstance(one, (int, float, Decimal)) and isinstance(other, (int, float, Decimal)):
        a, b = float(one), float(other)
        # Two percentiles under a microsecond are the same: times are no finer.
        return abs(a - b) / max(abs(a), abs(b), scale, 1e-6) if a != b else 0.0
    return 0.0 if one == other else math.inf


def _is_of_a_sketch(table: str, key: tuple[Any, ...]) -> bool:
    return table == "normal" and key[2] == "p95 wait"


def _scale(column: str, row: Row) -> float:
    """What a sketched number's error is a share of, if not of itself.

    A deviation is the median of distances from the usual value. Each distance is off by the errors
    of both its ends, so by a share of twice the usual value and of itself: of hours that were
    nearly the same little more than error is left, and its relative size says nothing."""
    if column != "deviation" or row["usual"] is None or row["deviation"] is None:
        return 0.0
    return float(2 * 1.4826 * row["usual"] + row["deviation"])


def _allowed(column: str, row: Row) -> float:
    if column == "verdict" and row["value"] is not None and row["samples"] and _is_close(row):
        return math.inf
    return ERROR + _EXACT


def _is_close(row: Row) -> bool:
    """So near to the border between two verdicts that the sketch's error may decide."""
    border = 4 * row["deviation"] + 0.3 * row["usual"] + 1.0
    return bool(
        abs(abs(row["value"] - row["usual"]) - border) < 0.15 * (row["usual"] + row["value"])
    )


def _read_sketch(row: Row) -> Row:
    """Percentiles from the counts in the buckets, as docs/reference/lake.md says."""
    buckets, read = row["buckets"], {k: v for k, v in row.items() if k != "buckets"}
    assert sum(bucket["n"] for bucket in buckets) == row["n"]
    for name, share in _SHARES.items():
        rank, seen = math.ceil(share * row["n"]), 0
        for bucket in buckets:
            seen += bucket["n"]
            if seen >= rank:
                growth = math.exp(GROWTH)
                read[name] = 2 * growth ** bucket["bucket"] / (growth + 1)
                break
    return read
