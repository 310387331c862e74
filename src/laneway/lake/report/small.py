"""The report of a small history without Spark: SQLite, in this process, runs the same queries.

Starting Spark and planning its queries takes a minute of processor time whatever they read. The
texts are those of the SQL files beside this module; what SQLite writes differently is replaced by
its name, and functions that it does not have are added. Times are microseconds, days are days
since 1970, lists are JSON.
"""

import json
import math
import re
import sqlite3
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laneway.lake.columns import widened
from laneway.lake.folder import LIVE_ROWS, Folder

from .summaries import METRIC, READ_BY_SUMMARIES, SUMMARIES, summary_sql
from .tables import COLUMNS, DAILY, Objective, table_sql
from .views import VIEWS, view_sql

SMALL = 100_000
"""Rows of history up to which Spark is not needed."""

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_UNITS = {"minute": 60_000_000, "hour": _HOUR, "day": _DAY}
_EPOCH = date(1970, 1, 1)

# What SQLite writes differently. An explode is on one line.
_EXPLODE = re.compile(r"lateral view explode\((.*)\) (\w+) as value$", re.MULTILINE)
_FIELD = re.compile(r"\b(\w+)\.value\.(\w+)")
_INTERVAL = re.compile(r"\binterval (\d+) (minute|hour|day)s?\b")
_WORDS = {
    "unix_micros": "",
    "timestamp_micros": "",
    "timestamp_seconds": "1000000 * ",
    "double": "1.0 * ",
    "count_if": "total",
    "bool_or": "max",
}
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})(?=\()")
_SIGNATURE = "select t.*, own_frame(t.said) as frame, masked(t.said) as text from told t"

# The same as in the view "signature".
_FRAME = re.compile(r'File "[^"]+", line \d+, in \S+', re.ASCII)
_FOREIGN = re.compile("site-packages|/lib/python|/laneway/")
_PARTS = re.compile(r'([^/"]+)", line \d+, in (\S+)', re.ASCII)
_SPACE = " \t\n\x0b\f\r"
_MASKS = (
    (re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"[0-9]+"), "#"),
)

_TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<struct<bucket: int, n: bigint>>": pa.list_(
        pa.struct([("bucket", pa.int32()), ("n", pa.int64())])
    ),
}
_COLUMN = re.compile(r"(\w+) ([^,<]+(?:<.*>)?)(?:, |$)")

Progress = Callable[[str], None]


def is_small(folder: Folder) -> bool:
    rows = 0
    for file in folder.history_files():
        rows += folder.count(file.path)
        if rows > SMALL:
            return False
    return True


class SmallBuilder:
    """Reads a lake's history and writes tables next to it, as ``Builder`` does."""

    def __init__(self, folder: Folder, objective: Objective, say: Progress) -> None:
        self._folder, self._objective, self._say = folder, objective, say
        self._database = sqlite3.connect(":memory:")
        _add_functions(self._database)

    def build_days(self, files: Sequence[str], changed: Collection[date]) -> None:
        """Builds the daily tables for these days from these files (paths in the lake)."""
        self._load("history", pa.concat_tables([self._read_day(path) for path in files]))
        self._load("live", self._folder.read_table(LIVE_ROWS))
        numbers = {(day - _EPOCH).days for day in changed}
        self._database.create_function("array_contains", 2, lambda _, day: day in numbers)
        given = {**self._objective.arguments, "days": None}
        for view in VIEWS:
            self._create(view, _SIGNATURE if view == "signature" else view_sql(view), {})
        for name in DAILY:
            self._say(f"table {name}, {len(changed)} days")
            self._create(name, table_sql(name), given)
            self._write_days(name, changed)

    def build_summaries(self, now: datetime) -> None:
        """Builds the tables over all days, as of ``now``; the daily ones must exist."""
        self._load("live", self._folder.read_table(LIVE_ROWS))
        for name in READ_BY_SUMMARIES:
            found = self._folder.read_dataset(_path(name))
            self._load(name, _empty(name) if found is None else found)
        given = {"now": _micros(now), "target": self._objective.share}
        self._create(METRIC, summary_sql(METRIC), given)
        for name in SUMMARIES:
            self._say(f"table {name}")
            self._create(name, summary_sql(name), given)
            self._write(self._rows(name), _path(name))

    def _read_day(self, path: str) -> pa.Table:
        rows = widened(self._folder.read_table(path))
        day = date.fromisoformat(path.split("/")[1].removeprefix("day="))
        return rows.append_column("day", pa.array([day] * rows.num_rows, pa.date32()))

    def _load(self, name: str, rows: pa.Table) -> None:
        """As a table, instead of the one that is there."""
        columns = [_plain(column) for column in rows.columns]
        names = ", ".join(f'"{column}"' for column in rows.column_names)
        marks = ", ".join("?" * len(columns))
        self._database.execute(f"drop table if exists {name}")
        self._database.execute(f"create table {name} ({names})")
        insert = f"insert into {name} values ({marks})"  # noqa: S608
        self._database.executemany(insert, zip(*columns, strict=True))

    def _create(self, name: str, query: str, given: Mapping[str, Any]) -> None:
        self._database.execute(f"drop table if exists {name}")
        self._database.execute(f"create table {name} as {for_sqlite(query)}", given)

    def _rows(self, name: str) -> pa.Table:
        found = self._database.execute(f"select * from {name}")  # noqa: S608
        names = [column[0] for column in found.description]
        rows = found.fetchall()
        values = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        schema = table_schema(name)
        return pa.table([_typed(values.get(f.name, ()), f.type) for f in schema], schema=schema)

    def _write_days(self, name: str, days: Collection[date]) -> None:
        rows = self._rows(name)
        for day in days:
            mine = rows.filter(pc.equal(rows["day"], pa.scalar(day, pa.date32())))
            self._write(mine.drop_columns(["day"]), f"{_path(name)}/day={day.isoformat()}")

    def _write(self, rows: pa.Table, path: str) -> None:
        """One file instead of those that were there; none if there are no rows."""
        self._folder.remove(path)
        if rows.num_rows:
            self._folder.write_table(rows, f"{path}/part-00000.parquet")


def for_sqlite(query: str) -> str:
    """A query of the report as SQLite writes it."""
    text = _EXPLODE.sub(r"join json_each(\1) \2", query)
    text = _FIELD.sub(r"json_extract(\1.value, '$.\2')", text)
    text = _INTERVAL.sub(lambda found: str(int(found[1]) * _UNITS[found[2]]), text)
    text = _WORD.sub(lambda found: _WORDS[found[1]], text)
    return text.replace(" div ", " / ").replace(" rlike ", " regexp ")


def table_schema(name: str) -> pa.Schema:
    """The columns of a table of the report."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in _COLUMN.findall(COLUMNS[name])])


def _empty(name: str) -> pa.Table:
    return table_schema(name).empty_table()


def _path(name: str) -> str:
    return f"report/tables/{name}"


def _micros(moment: datetime) -> int:
    return (moment - datetime.fromisoformat("1970-01-01T00:00:00Z")) // timedelta(microseconds=1)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return list(map(_json, values)) if pa.types.is_nested(column.type) else values


def _typed(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else json.loads(v) for v in values], kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    make = _MAKE.get(kind)
    if make is not None:
        values = [None if v is None else make(v) for v in values]
    return pa.array(values, kind)


# A count may be 3.0, and a truth 1.
_MAKE: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.int64(): int,
    pa.int32(): int,
    pa.float64(): float,
    pa.bool_(): bool,
}


def _add_functions(database: sqlite3.Connection) -> None:
    for name, count, function in _FUNCTIONS:
        database.create_function(name, count, function, deterministic=True)
    for name, count, aggregate in _AGGREGATES:
        database.create_aggregate(name, count, aggregate)
    database.create_window_function("median", 1, _Median)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _sorted(text: str) -> str | None:
    values = json.loads(text)
    order = (lambda one: tuple(one.values())) if values and isinstance(values[0], dict) else None
    return _json(sorted(values, key=order))


def _divided(one: Any, other: Any) -> float | None:
    return None if one is None or not other else one / other


def _known(*values: Any) -> list[Any]:
    return [value for value in values if value is not None]


def _sequence(first: int, last: int, step: int = 1) -> str | None:
    return _json(list(range(first, last + 1, step)))


def _own_frame(said: str) -> str:
    own = [line for line in _FRAME.findall(said) if not _FOREIGN.search(line)]
    found = _PARTS.search(own[-1]) if own else None
    return f"{found[1]} in {found[2]}" if found else ""


def _masked(said: str) -> str:
    text = said.rstrip(_SPACE).rpartition("\n")[2]
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text[:200]


_FUNCTIONS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("array", -1, lambda *values: _json(values)),
    ("array_sort", 1, _sorted),
    ("ceil", 1, lambda x: None if x is None else math.ceil(x)),
    ("date_sub", 2, lambda day, days: day - days),
    ("date_trunc", 2, lambda _, us: None if us is None else us // _HOUR * _HOUR),
    ("exp", 1, lambda x: None if x is None else math.exp(x)),
    ("floor", 1, lambda x: None if x is None else math.floor(x)),
    ("greatest", -1, lambda *values: max(_known(*values), default=None)),
    ("least", -1, lambda *values: min(_known(*values), default=None)),
    ("ln", 1, lambda x: None if x is None else math.log(x)),
    ("make_dt_interval", 2, lambda days, hours: days * _DAY + hours * _HOUR),
    ("masked", 1, _masked),
    ("named_struct", -1, lambda *pairs: _json(dict(zip(pairs[::2], pairs[1::2], strict=True)))),
    ("own_frame", 1, _own_frame),
    ("pow", 2, lambda x, y: None if x is None else x**y),
    ("regexp", 2, lambda pattern, text: text is not None and bool(re.search(pattern, text))),
    ("sequence", -1, _sequence),
    ("struct", -1, lambda *values: _json(values)),
    ("to_date", 1, lambda us: None if us is None else us // _DAY),
    ("try_divide", 2, _divided),
    ("unix_seconds", 1, lambda us: None if us is None else us // 1_000_000),
)


class _CollectList:
    """Of what is JSON already, such as a named_struct."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def step(self, value: str) -> None:
        self._values.append(value)

    def finalize(self) -> str:
        return f"[{','.join(self._values)}]"


class _CollectSet:
    def __init__(self) -> None:
        self._values: set[Any] = set()

    def step(self, value: Any) -> None:
        if value is not None:
            self._values.add(value)

    def finalize(self) -> str | None:
        return _json(list(self._values))


class _MaxBy:
    """The value where ``by`` is largest; a struct is compared by its values in order."""

    def __init__(self) -> None:
        self._best: Any = None
        self._value: Any = None

    def step(self, value: Any, by: Any) -> None:
        if isinstance(by, str):
            by = json.loads(by)
        if by is not None and (self._best is None or by > self._best):
            self._best, self._value = by, value

    def finalize(self) -> Any:
        return self._value


class _Median:
    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float | None) -> None:
        if value is not None:
            insort(self._values, value)

    def inverse(self, value: float | None) -> None:
        if value is not None:
            del self._values[bisect_left(self._values, value)]

    def value(self) -> float | None:
        values, half = self._values, len(self._values) // 2
        if not values:
            return None
        return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2

    finalize = value


_AGGREGATES: tuple[tuple[str, int, Any], ...] = (
    ("collect_list", 1, _CollectList),
    ("collect_set", 1, _CollectSet),
    ("max_by", 2, _MaxBy),
)
