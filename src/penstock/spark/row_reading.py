"""Batch reads from MySQL, MariaDB and SQLite: ranges of ids with as many rows each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from .options import Options
from .row_store import RowStore, row_store
from .tables import TABLES, chosen, column_types

if TYPE_CHECKING:
    import pyarrow

_VIEWS = {
    "history": ("history_v1", "ended_at"),
    "messages": ("message_v1", "published_at"),
    "dead_letters": ("dead_letter_v1", "died_at"),
}
_PORTION = 2_000
_LAST = 2**63 - 1


@dataclass
class Span(InputPartition):
    """The ids after ``start`` up to ``end``."""

    start: int
    end: int


class RowReader(DataSourceReader):
    """Reads history, messages or dead letters once."""

    def __init__(self, options: Options, what: str, schema: StructType) -> None:
        self.options = options
        self.what = what
        self.columns = chosen(schema, what)
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        rows = self.options["rowsPerPartition"] or TABLES[self.what].rows_per_partition
        with row_store(self.options.address) as store:
            values = {**self._values(store, Span(0, _LAST)), "rows": rows}
            cuts = store.ask("cuts", values, **self._blanks(store))
        places = [0, *(int(row[0]) for row in cuts)]
        return [Span(start, end) for start, end in pairwise(places)] or [Span(0, 0)]

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        if not isinstance(partition, Span):
            return
        wanted = to_arrow_schema(self.schema, timezone="UTC")
        with row_store(self.options.address) as store:
            columns = ", ".join(_selected(name) for name in self.columns)
            text = store.text("read", columns=columns, **self._blanks(store))
            for rows in store.stream(text, self._values(store, partition), _PORTION):
                yield self._batch(rows, wanted)

    def _batch(self, rows: Sequence[Sequence[Any]], wanted: pa.Schema) -> pa.RecordBatch:
        types = column_types(self.what)
        arrays = [
            _array(values, types[name]).cast(field.type)
            for values, name, field in zip(
                zip(*rows, strict=True), self.columns, wanted, strict=True
            )
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _values(self, store: RowStore, span: Span) -> dict[str, object]:
        options = self.options
        return {
            "queue": options["queue"],
            "channel": options["channel"],
            "kind": options["kind"],
            "since": store.moment(options["since"]),
            "until": store.moment(options["until"]),
            "from_id": span.start,
            "to_id": span.end,
        }

    def _blanks(self, store: RowStore) -> dict[str, str]:
        view, time = _VIEWS[self.what]
        return {"view": store.named(view), "where": store.text("where", time=time)}


def _selected(name: str) -> str:
    """The number of a transaction is PostgreSQL's alone."""
    return "null" if name == "xid" else f"h.`{name}`"


def _array(values: Sequence[Any], kind: str) -> pa.Array:
    """From what drivers answer: SQLite has times as microseconds, and no booleans."""
    if kind == "timestamp":
        is_number = any(isinstance(value, int) for value in values)
        plain = pa.array(values, pa.int64() if is_number else pa.timestamp("us"))
        return plain.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    if kind == "boolean":
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    if kind == "binary":
        return pa.array(values, pa.binary())
    return pa.array(values, pa.string() if kind == "string" else pa.int64())
