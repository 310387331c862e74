"""The books in PostgreSQL, which counts, sums and checks what it holds by itself."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa
import pyarrow.csv
from psycopg import Connection, sql

from penstock.errors import LakeMismatch
from penstock.spark.connections import connected
from penstock.spark.fetching import fetch
from penstock.spark.options import Address

from .books import START, Books, DayCount, Place

_TYPES = {
    "int64": "bigint",
    "int16": "smallint",
    "string": "string",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}


_MANY = 50_000
"""Rows from which ADBC is faster: it reads all types of the database when it connects."""


class PostgresqlBooks(Books):
    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        with connected(self._address) as connection:
            yield connection

    def ask_on(self, connection: Any, name: str, **blanks: Any) -> list[tuple[Any, ...]]:
        cursor = connection.execute(self._filled(name, blanks))
        return cursor.fetchall() if cursor.description else []

    def tell_on(self, connection: Any, name: str, **blanks: Any) -> int:
        return int(connection.execute(self._filled(name, blanks)).rowcount)

    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **blanks: Any) -> pa.Table:
        types = {field.name: _TYPES[str(field.type)] for field in schema}
        # Nothing read is nothing known about nulls; the file's own schema says what may be null.
        loose = pa.schema([field.with_nullable(True) for field in schema])
        transport = "auto" if rows >= _MANY else "copy"
        batches = fetch(self._address, self._text(name, **blanks), types, loose, transport)
        return pa.Table.from_batches(batches, loose).cast(schema)

    def plan(self, number: int, start: Place, rows: int) -> None:
        begin = {"from_xid": start[0], "from_id": start[1]}
        found = self.ask("next_batch", rows=rows, **begin)
        if found:
            ends = {**begin, "to_xid": found[0][0], "to_id": found[0][1]}
            content = sql.SQL(self._text("columns", **ends))
            self.ask("plan_batch", batch=number, rows=content, **ends)

    def last(self) -> tuple[int, Place]:
        """Refuses an end that this server cannot have seen yet: rows would be before it that the
        lake never got, and nobody would miss them."""
        rows = self.ask("last_batch")
        if rows and rows[0][1] >= rows[0][3]:
            raise LakeMismatch(
                f"the books of {self.lake!r} end at transaction {rows[0][1]:,}, which this server "
                "has not reached: the database was restored from another server's dump; see "
                "“Restored from a dump” in docs/how-to/lake.md"
            )
        return (rows[0][0], (rows[0][1], rows[0][2])) if rows else (-1, START)

    def purge_day(self, day: date) -> int | None:
        gone: int | None = self.ask("purge_day", day=day)[0][0]
        return gone

    def days(self) -> list[DayCount]:
        return [DayCount(*row) for row in self.ask("days")]

    def mark_purged(self) -> None:
        self.ask("mark_purged")

    def load(self, rows: pa.Table, day: date) -> None:
        target = io.BytesIO()
        pyarrow.csv.write_csv(
            rows.drop_columns(["id", "xid"]),
            target,
            pyarrow.csv.WriteOptions(include_header=False),
        )
        with self.transaction() as connection:
            self.ask_on(connection, "partition", day=day)
            with connection.cursor().copy(self._text("load").encode()) as copy:
                copy.write(target.getvalue())

    @property
    def _address(self) -> Address:
        return Address(self.url, self.schema)

    def _text(self, name: str, **blanks: Any) -> str:
        return self._filled(name, blanks).as_string(None)

    def _filled(self, name: str, blanks: dict[str, Any]) -> sql.Composed:
        parts = {key: _part(value) for key, value in blanks.items()}
        schema = sql.Identifier(self.schema)
        return _template(name).format(schema=schema, lake=sql.Literal(self.lake), **parts)


def _part(value: Any) -> sql.Composable:
    return value if isinstance(value, sql.Composable) else sql.Literal(value)


@cache
def _template(name: str) -> sql.SQL:
    folder = files(__package__) / "sql" / "postgresql"
    lines = (folder / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return sql.SQL("\n".join(line for line in lines if not line.startswith("--")).strip())
