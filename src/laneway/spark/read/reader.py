"""Batch reads from PostgreSQL: partitions of equal size, each a query that any task can run.

Filters of the query are part of the statement if Spark's
``spark.sql.python.filterPushdown.enabled`` is on.

Spark does not evaluate a filter again that was taken here, so only those are taken that mean the
same in both.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from psycopg import sql
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from laneway.spark.errors import brief_errors
from laneway.spark.options import SparkOptions
from laneway.spark.store import connected
from laneway.stores.arrow import fetch
from laneway.stores.postgresql import PostgresqlStore

from .tables import TABLES, chosen, column_types

if TYPE_CHECKING:
    import pyarrow


_START = (0, 0)
_END = (2**63 - 1, 2**63 - 1)
_LARGE = 64 * 2**20
_SAMPLED_ROWS = 50_000
_PERCENT = 5
_FILTERS = ("queue", "channel", "kind", "since", "until")


@dataclass
class Query(InputPartition):
    """One partition: a complete statement, so that tasks have nothing to plan."""

    text: str

    def __repr__(self) -> str:
        return "Query()"  # it holds the user's values


@brief_errors
class QueryReader:
    """Common to all readers whose partitions are queries."""

    def __init__(self, options: SparkOptions, what: str, schema: StructType) -> None:
        self.options = options
        self.what = what
        self.columns = chosen(schema, what)
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        if not isinstance(partition, Query):
            return
        types = column_types(self.what)
        yield from fetch(
            self.options.address,
            partition.text,
            {name: types[name] for name in self.columns},
            to_arrow_schema(self.schema, timezone="UTC"),
            self.options["transport"],
        )


@brief_errors
class LanewayReader(QueryReader, DataSourceReader):
    """Reads history, messages or dead letters once."""

    def partitions(self) -> Sequence[InputPartition]:
        with connected(self.options.address) as store:
            return plan(store, self, _START, _END, self.conditions(store))

    def conditions(self, store: PostgresqlStore) -> str:
        return conditions(store, self.options, self.what)


def conditions(store: PostgresqlStore, options: SparkOptions, what: str) -> str:
    """The options that select rows, as SQL."""
    values = {name: options.values.get(name) for name in _FILTERS}
    return store.text(TABLES[what].filters, **values)


def plan(
    store: PostgresqlStore,
    reader: QueryReader,
    start: tuple[int, int],
    end: tuple[int, int],
    filters: str,
) -> list[InputPartition]:
    """Partitions of the rows after ``start`` up to ``end``."""
    table = TABLES[reader.what]
    rows = reader.options["rowsPerPartition"] or table.rows_per_partition
    snapshot, settled = store.ask("snapshot")[0]
    values = {"filters": filters, "snapshot": snapshot, "settled": settled}
    percent = _sample_percent(store, reader, rows)
    if percent is None:
        cuts = store.ask(table.cuts, rows=rows, **position_range(start, end), **values)
    else:
        cuts = store.ask(
            "history_sample",
            rows=rows * percent // 100,
            percent=percent,
            **position_range(start, end),
            **values,
        )
    positions = [start, *(_position(cut) for cut in cuts), end]
    return [
        Query(store.text(table.rows, columns=reader.columns, **position_range(a, b), **values))
        for a, b in pairwise(positions)
        if a != b
    ]


def _sample_percent(store: PostgresqlStore, reader: QueryReader, rows: int) -> int | None:
    """How much of a large history is sampled to find the cuts; None: all of it is read."""
    if reader.what != "history" or rows < _SAMPLED_ROWS:
        return None
    size = store.ask("history_size")[0][0]
    return _PERCENT if size > _LARGE else None


def _position(cut: tuple[Any, ...]) -> tuple[int, int]:
    return (cut[0], cut[1]) if len(cut) == 2 else (0, cut[0])


def position_range(start: tuple[int, int], end: tuple[int, int]) -> dict[str, int]:
    return {"from_xid": start[0], "from_id": start[1], "to_xid": end[0], "to_id": end[1]}


_COMPARING = {
    EqualTo: "{column} = {value}",
    EqualNullSafe: "{column} is not distinct from {value}",
    GreaterThan: "{column} > {value}",
    GreaterThanOrEqual: "{column} >= {value}",
    LessThan: "{column} < {value}",
    LessThanOrEqual: "{column} <= {value}",
}
_OF_TEXT = {
    StringStartsWith: "starts_with({column}, {value})",
    StringEndsWith: "right({column}, length({value})) = {value}",
    StringContains: "strpos({column}, {value}) > 0",
}
_OF_NULL = {IsNull: "{column} is null", IsNotNull: "{column} is not null"}
_FITS: dict[str, Callable[[Any], bool]] = {
    "bigint": lambda value: type(value) is int,
    "int": lambda value: type(value) is int,
    "smallint": lambda value: type(value) is int,
    "boolean": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str and "\0" not in value,
    "timestamp": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
}


@brief_errors
class PushingReader(LanewayReader):
    """A reader that accepts filters."""

    pushed: tuple[sql.Composable, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Returns those that Spark has to evaluate itself."""
        native = column_types(self.what)
        types = {
            field.name: native[field.name]
            for field in self.schema
            if field.dataType.simpleString() == native[field.name]
        }
        for wanted in filters:
            condition = _condition(wanted, types)
            if condition is None:
                yield wanted
            else:
                self.pushed += (condition,)

    def conditions(self, store: PostgresqlStore) -> str:
        pushed = [condition.as_string(store.connection) for condition in self.pushed]
        return " and ".join([super().conditions(store), *pushed])


def _condition(wanted: Filter, types: dict[str, str]) -> sql.Composable | None:
    if isinstance(wanted, Not):
        inner = _condition(wanted.child, types)
        return None if inner is None else sql.SQL("not ({})").format(inner)
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    kind = types.get(path[0]) if len(path) == 1 else None
    if kind is None:
        return None
    return _on_column(wanted, path[0], kind)


def _on_column(wanted: Filter, name: str, kind: str) -> sql.Composable | None:
    # Spark compares text byte by byte.
    collate = sql.SQL(' collate "C"' if kind == "string" else "")
    column = sql.SQL("(h.{}{})").format(sql.Identifier(name), collate)
    if type(wanted) in _OF_NULL:
        return _filled(_OF_NULL[type(wanted)], column, None)
    value = getattr(wanted, "value", None)
    fits = _FITS.get(kind, lambda _: False)
    if isinstance(wanted, In):
        if not wanted.value or not all(fits(one) for one in wanted.value):
            return None
        equal = [_filled(_COMPARING[EqualTo], column, one) for one in wanted.value]
        return sql.SQL("({})").format(sql.SQL(" or ").join(equal))
    known = {**_COMPARING, **_OF_TEXT} if kind == "string" else _COMPARING
    text = known.get(type(wanted))
    return _filled(text, column, value) if text and fits(value) else None


def _filled(text: str, column: sql.Composable, value: object) -> sql.Composable:
    return sql.SQL(text).format(column=column, value=sql.Literal(value))
