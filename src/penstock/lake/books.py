"""The lake's books in the queue's database: which part of the history is in which files."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

Place = tuple[int, int]
START: Place = (0, 0)
STATES = ("planned", "written", "verified", "purged")


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


class DayCount(NamedTuple):
    """A day of the history, and how many of its rows are not in the lake, not verified, or not read
    by somebody who follows the history."""

    day: date
    rows: int
    unsynced: int
    unverified: int
    unread: int


@dataclass(frozen=True)
class Books(ABC):
    """``lake`` names the lake among those of a queue. The place of a row in the history is a pair
    (``xid``, ``id``) that later rows are never before: on PostgreSQL the transaction that wrote it,
    on MySQL the stamp that it got after the commit, on SQLite always 0, where ids are enough."""

    url: str = field(repr=False)  # it may hold a password
    schema: str
    lake: str = "lake"

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A connection that commits at the end."""

    @abstractmethod
    def ask_on(self, connection: Any, name: str, **blanks: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""

    @abstractmethod
    def tell_on(self, connection: Any, name: str, **blanks: Any) -> int:
        """How many rows a statement changed."""

    @abstractmethod
    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **blanks: Any) -> pa.Table:
        """The rows of a large query; ``rows``: about how many, if that is known."""

    @abstractmethod
    def plan(self, number: int, start: Place, rows: int) -> None:
        """Notes a batch of at most so many rows after ``start``, if any may be read already."""

    @abstractmethod
    def days(self) -> list[DayCount]:
        """All that the database still holds."""

    @abstractmethod
    def mark_purged(self) -> None:
        """Batches of which no row is left."""

    @abstractmethod
    def purge_day(self, day: date) -> int | None:
        """How many rows went; None if it was not done."""

    @abstractmethod
    def load(self, rows: pa.Table, day: date) -> None:
        """Puts rows of one day into the history; ids are the database's."""

    def ask(self, name: str, **blanks: Any) -> list[tuple[Any, ...]]:
        """In a transaction of its own."""
        with self.transaction() as connection:
            return self.ask_on(connection, name, **blanks)

    def now(self) -> datetime:
        """In UTC, whatever the session's time zone is: days of a lake are those."""
        moment: datetime = self.ask("clock")[0][0]
        return moment.astimezone(UTC)

    def ended_before(self, length: timedelta) -> date:
        """Days before this one ended so long ago, to the last moment."""
        return (self.now() - length).date()

    def batches(self, *states: str) -> list[Batch]:
        return [Batch(*row) for row in self.ask("batches", states=list(states or STATES))]

    def files(self) -> list[File]:
        return [File(*row) for row in self.ask("files")]

    def last(self) -> tuple[int, Place]:
        """The number of the last batch, and where it ends."""
        rows = self.ask("last_batch")
        return (rows[0][0], (rows[0][1], rows[0][2])) if rows else (-1, START)

    def mark(self, batch: Batch, before: str, state: str) -> None:
        self.ask("mark", batch=batch.number, before=before, state=state)


def overlapping(files: Sequence[File], batch: int) -> list[File]:
    return [file for file in files if batch in file.batches]
