"""The lake's books in the queue's database: batches, files, readers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from psycopg import Connection, sql

from penstock.spark.connections import connected
from penstock.spark.options import Address

Place = tuple[int, int]
START: Place = (0, 0)


class Batch(NamedTuple):
    """A range of the history; the columns of batches.sql."""

    number: int
    from_xid: int
    from_id: int
    to_xid: int
    to_id: int
    rows: int
    checksum: Decimal
    first_ended_at: datetime
    last_ended_at: datetime
    state: str

    @property
    def range(self) -> dict[str, int]:
        return {
            "from_xid": self.from_xid,
            "from_id": self.from_id,
            "to_xid": self.to_xid,
            "to_id": self.to_id,
        }


class File(NamedTuple):
    """A file that belongs to the lake; the columns of files.sql."""

    path: str
    day: date
    batches: list[int]
    rows: int
    checksum: Decimal
    size: int
    staged: str | None = None
    replaces: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Books:
    """Each method is one transaction. ``lake`` names the lake among those of a queue."""

    address: Address
    lake: str = "lake"

    def text(self, name: str, **blanks: Any) -> str:
        """A statement without parameters, for those who take none."""
        return self._filled(name, blanks).as_string(None)

    def ask(self, name: str, **blanks: Any) -> list[tuple[Any, ...]]:
        with self.transaction() as connection:
            return self.ask_on(connection, name, **blanks)

    def ask_on(
        self, connection: Connection[Any], name: str, **blanks: Any
    ) -> list[tuple[Any, ...]]:
        cursor = connection.execute(self._filled(name, blanks))
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        with connected(self.address) as connection:
            yield connection

    def batches(self, *states: str) -> list[Batch]:
        return [Batch(*row) for row in self.ask("batches", states=list(states))]

    def files(self) -> list[File]:
        return [File(*row) for row in self.ask("files")]

    def last(self) -> tuple[int, Place]:
        """The number of the last batch, and where it ends."""
        rows = self.ask("last_batch")
        return (rows[0][0], (rows[0][1], rows[0][2])) if rows else (-1, START)

    def mark(self, batch: Batch, before: str, state: str) -> None:
        self.ask("mark", batch=batch.number, before=before, state=state)

    def _filled(self, name: str, blanks: dict[str, Any]) -> sql.Composed:
        schema = sql.Identifier(self.address.schema)
        parts = {key: _part(value) for key, value in blanks.items()}
        return _template(name).format(schema=schema, lake=sql.Literal(self.lake), **parts)


def _part(value: Any) -> sql.Composable:
    if isinstance(value, sql.Composable):
        return value
    return sql.Literal(json.dumps(value) if isinstance(value, dict) else value)


@cache
def _template(name: str) -> sql.SQL:
    text = (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return sql.SQL("\n".join(lines).strip())


def overlapping(files: Sequence[File], batch: int) -> list[File]:
    return [file for file in files if batch in file.batches]
