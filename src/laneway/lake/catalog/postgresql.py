"""The catalog in PostgreSQL."""

import io
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv

from laneway.errors import LakeMismatch
from laneway.stores.arrow import fetch
from laneway.stores.postgresql import PostgresqlStore, open_postgresql

from .catalog import START, Catalog, DayCount, Position

_TYPES = {
    "int64": "bigint",
    "int16": "smallint",
    "string": "string",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}

_MANY = 50_000
"""Rows from which ADBC is faster: it reads all types of the database when it connects."""


class PostgresqlCatalog(Catalog):
    def connected(self) -> AbstractContextManager[PostgresqlStore]:
        return open_postgresql(self.address, __package__)

    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **values: Any) -> pa.Table:
        types = {field.name: _TYPES[str(field.type)] for field in schema}
        # A result does not say which columns may be null; the schema of the file does.
        loose = pa.schema([field.with_nullable(True) for field in schema])
        transport = "auto" if rows >= _MANY else "copy"
        with self.connected() as store:
            query = store.text(name, **values)
        batches = fetch(self.address, query, types, loose, transport)
        return pa.Table.from_batches(batches, loose).cast(schema)

    def plan(self, number: int, start: Position, rows: int) -> None:
        begin = {"from_xid": start[0], "from_id": start[1]}
        found = self.ask("next_batch", rows=rows, **begin)
        if found:
            ends = {**begin, "to_xid": found[0][0], "to_id": found[0][1]}
            with self.connected() as store:
                history = store.text("history_rows", **ends)
                store.tell("plan_batch", lake=self.lake, batch=number, history=history, **ends)

    def last(self) -> tuple[int, Position]:
        """Refuses an end that this server has not reached: new rows would get positions before it,
        and the lake would never get them."""
        rows = self.ask("last_batch")
        if rows and rows[0][1] >= rows[0][3]:
            raise LakeMismatch(
                f"the catalog of {self.lake!r} ends at transaction {rows[0][1]:,}, which this "
                "server has not reached: the database was restored from another server's dump; "
                "see “Restored from a dump” in docs/how-to/lake.md"
            )
        return (rows[0][0], (rows[0][1], rows[0][2])) if rows else (-1, START)

    def purge_day(self, day: date) -> int | None:
        deleted: int | None = self.ask("purge_day", day=day)[0][0]
        return deleted

    def days(self) -> list[DayCount]:
        return [DayCount(*row) for row in self.ask("days")]

    def uncounted(self, before: date) -> datetime | None:
        found: datetime | None = self.ask("uncounted", before=before)[0][0]
        return found

    def mark_purged(self) -> None:
        self.tell("mark_purged")

    def load(self, rows: pa.Table, day: date) -> None:
        target = io.BytesIO()
        pyarrow.csv.write_csv(
            rows.drop_columns(["id", "xid"]),
            target,
            pyarrow.csv.WriteOptions(include_header=False),
        )
        with self.connected() as store, store.transaction():
            store.ask("partition", day=day)
            with store.copy("load") as copy:
                copy.write(target.getvalue())
