"""Batch reads: partitions of as many rows each, every one a query that any task can run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from psycopg import Connection, sql
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from .connections import ask, connected
from .fetching import fetch
from .options import Options
from .statements import composed, statement
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
    """One partition: the whole statement, so that tasks need no planning of their own."""

    text: str

    def __repr__(self) -> str:
        return "Query()"  # it holds the user's values


class Fetching:
    """What every reader of rows shares."""

    def __init__(self, options: Options, what: str, schema: StructType) -> None:
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


class PenstockReader(Fetching, DataSourceReader):
    """Reads history, messages or dead letters once."""

    def partitions(self) -> Sequence[InputPartition]:
        with connected(self.options.address) as connection:
            return plan(connection, self, _START, _END, self.conditions())

    def conditions(self) -> sql.Composable:
        return conditions(self.options, self.what)


def conditions(options: Options, what: str) -> sql.Composable:
    """The options that say which rows."""
    values = {name: options.values.get(name) for name in _FILTERS}
    return composed(TABLES[what].read.replace("_rows", "_filters"), **values)


def plan(
    connection: Connection[Any],
    reader: Fetching,
    start: tuple[int, int],
    end: tuple[int, int],
    filters: sql.Composable,
) -> list[InputPartition]:
    """Partitions of the rows after ``start`` up to ``end``."""
    table = TABLES[reader.what]
    rows = reader.options["rowsPerPartition"] or table.rows_per_partition
    snapshot, settled = ask(connection, "snapshot")[0]
    blanks = {
        "schema": reader.options.address.schema,
        "filters": filters,
        "snapshot": snapshot,
        "settled": settled,
    }
    percent = _sample(connection, reader, rows)
    if percent is None:
        cuts = ask(connection, table.cut, rows=rows, **place_range(start, end), **blanks)
    else:
        rows = rows * percent // 100
        cuts = ask(
            connection,
            "history_sample",
            rows=rows,
            percent=percent,
            **place_range(start, end),
            **blanks,
        )
    places = [start, *(_place(cut) for cut in cuts), end]
    return [
        Query(
            statement(connection, table.read, columns=reader.columns, **place_range(a, b), **blanks)
        )
        for a, b in pairwise(places)
        if a != b
    ]


def _sample(connection: Connection[Any], reader: Fetching, rows: int) -> int | None:
    """Which part of a large history is looked at to find the cuts; None: all of it, exactly."""
    if reader.what != "history" or rows < _SAMPLED_ROWS:
        return None
    size = ask(connection, "history_size", of=reader.options.address.schema)[0][0]
    return _PERCENT if size > _LARGE else None


def _place(cut: tuple[Any, ...]) -> tuple[int, int]:
    return (cut[0], cut[1]) if len(cut) == 2 else (0, cut[0])


def place_range(start: tuple[int, int], end: tuple[int, int]) -> dict[str, int]:
    return {"from_xid": start[0], "from_id": start[1], "to_xid": end[0], "to_id": end[1]}
