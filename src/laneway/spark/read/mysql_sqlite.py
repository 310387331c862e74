"""Batch reads from MySQL, MariaDB and SQLite: partitions are ranges of ids of equal row counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from laneway.spark.errors import brief_errors
from laneway.spark.options import SparkOptions
from laneway.spark.store import connected_to_any

from .tables import TABLES, chosen, column_types

if TYPE_CHECKING:
    import pyarrow

_BATCH = 2_000
_LAST = 2**63 - 1
_FILTERS = ("queue", "channel", "kind", "since", "until")


@dataclass
class IdRange(InputPartition):
    """The ids after ``start`` up to ``end``."""

    start: int
    end: int


@brief_errors
class MysqlSqliteReader(DataSourceReader):
    """Reads history, messages or dead letters once."""

    def __init__(self, options: SparkOptions, what: str, schema: StructType) -> None:
        self.options = options
        self.what = what
        self.columns = chosen(schema, what)
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        table = TABLES[self.what]
        rows = self.options["rowsPerPartition"] or table.rows_per_partition
        with connected_to_any(self.options.address) as store:
            cuts = store.ask(table.cuts, rows=rows, **self._values(IdRange(0, _LAST)))
        ends = [0, *(int(row[0]) for row in cuts)]
        return [IdRange(start, end) for start, end in pairwise(ends)] or [IdRange(0, 0)]

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        if not isinstance(partition, IdRange):
            return
        wanted = to_arrow_schema(self.schema, timezone="UTC")
        # Transaction numbers exist on PostgreSQL only: elsewhere the column is null.
        columns = [name for name in self.columns if name != "xid"] or ["id"]
        values = self._values(partition)
        with connected_to_any(self.options.address) as store:
            name = TABLES[self.what].rows
            for rows in store.stream(name, _BATCH, columns=columns, **values):
                yield self._batch(columns, rows, wanted)

    def _batch(
        self, columns: list[str], rows: Sequence[Sequence[Any]], wanted: pa.Schema
    ) -> pa.RecordBatch:
        types = column_types(self.what)
        found = dict(zip(columns, zip(*rows, strict=True), strict=True))
        nulls = (None,) * len(rows)
        arrays = [
            _array(found.get(name, nulls), types[name]).cast(field.type)
            for name, field in zip(self.columns, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _values(self, ids: IdRange) -> dict[str, object]:
        options = {name: self.options[name] for name in _FILTERS}
        return {**options, "from_id": ids.start, "to_id": ids.end}


def _array(values: Sequence[Any], kind: str) -> pa.Array:
    """From what drivers return: SQLite has times as microseconds, and no booleans."""
    if kind == "timestamp":
        is_number = any(isinstance(value, int) for value in values)
        plain = pa.array(values, pa.int64() if is_number else pa.timestamp("us"))
        return plain.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    if kind == "boolean":
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    if kind == "binary":
        return pa.array(values, pa.binary())
    return pa.array(values, pa.string() if kind == "string" else pa.int64())
