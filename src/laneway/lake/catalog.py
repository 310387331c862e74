"""The lake's catalog, in the queue's database: which part of the history is in which files. Here is
what every catalog can do, with the statements that all databases have.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from laneway.drivers.sqlite.url import read_url
from laneway.errors import InvalidOption
from laneway.stores import Store, StoreAddress, open_store, store_address

from .columns import HISTORY, LIVE

Position = tuple[int, int]
Checked = tuple[int, Decimal]
"""How many rows, and their checksum."""
START: Position = (0, 0)
STATES = ("planned", "written", "verified", "purged")


class Batch(NamedTuple):
    """A range of the history; the columns of the statement ``batches``."""

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

    @property
    def totals(self) -> dict[str, Any]:
        return {"batch": self.number, "rows": self.rows, "checksum": self.checksum}


class CatalogFile(NamedTuple):
    """A file of the lake; the columns of the statement ``files``."""

    path: str
    day: date
    batches: list[int]
    rows: int
    checksum: Decimal
    size: int
    staged: str | None = None
    replaces: list[str] | None = None


class DayCount(NamedTuple):
    """A day of the history: its rows, and how many of them are not in the lake, not verified, or
    not read by a registered stream."""

    day: date
    rows: int
    unsynced: int
    unverified: int
    unread: int


class RegisteredStream(NamedTuple):
    """A registered stream of the history; the columns of the statement ``readers``. It is waited
    for until ``waited_until``; ``missed_at``: when rows were deleted that it had not read."""

    name: str
    seen_at: datetime
    waited_until: datetime
    missed_at: datetime | None
    unread: int


class Tenant(NamedTuple):
    """A channel whose rows are looked for; without ``queue`` in every queue."""

    channel: str
    queue: str | None = None


class TenantRows(NamedTuple):
    """What the database has of a tenant; the columns of the statement ``tenant_rows``. ``held``:
    nodes of flows that wait for their parents; ``counts``: rows that count dead letters;
    ``operations``: bulk ones that were started for the channel."""

    messages: int
    dead_letters: int
    history: int
    results: int
    held: int
    counts: int
    operations: int


@dataclass(frozen=True)
class Catalog(ABC):
    """``lake`` tells the lakes of a queue apart.

    The position of a row in the history is a pair (``xid``, ``id``), and no row is ever added
    before one that may be read: on PostgreSQL ``xid`` is the transaction that wrote the row, on
    MySQL the stamp that it got after its commit, on SQLite always 0, because ids are enough.
    """

    address: StoreAddress
    lake: str = "lake"

    @abstractmethod
    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **values: Any) -> pa.Table:
        """The rows of a large query; ``rows``: about how many, if that is known."""

    @abstractmethod
    def plan(self, number: int, start: Position, rows: int) -> None:
        """Records a batch of at most so many rows after ``start``, if any may be read already."""

    @abstractmethod
    def days(self, force: bool = False) -> list[DayCount]:
        """All days that the database still has; with ``force`` nobody waits for streams."""

    @abstractmethod
    def uncounted(self, before: date) -> datetime | None:
        """When the first row ended that ended before that day and that upkeep has not counted into
        the minutes; None if it has counted them all."""

    @abstractmethod
    def mark_purged(self) -> None:
        """Marks batches that have no rows left in the history."""

    @abstractmethod
    def purge_day(self, day: date, force: bool = False) -> int | None:
        """How many rows were deleted; None if the day was left as it is. With ``force`` streams
        that have not read it are not waited for."""

    @abstractmethod
    def erase_history(self, tenant: Tenant) -> int:
        """Deletes the history of a tenant, in every state; how many rows."""

    @abstractmethod
    def load(self, rows: pa.Table, day: date) -> None:
        """Adds rows of one day to the history; the database assigns new ids."""

    def connected(self) -> AbstractContextManager[Store]:
        return open_store(self.address, __package__)

    @contextmanager
    def transaction(self) -> Iterator[Store]:
        """A connection in a transaction that commits at the end."""
        with self.connected() as store, store.transaction():
            yield store

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement, on a connection of its own."""
        with self.connected() as store:
            return store.ask(name, lake=self.lake, **values)

    def tell(self, name: str, **values: Any) -> int:
        """How many rows a statement changed, on a connection of its own."""
        with self.connected() as store:
            return store.tell(name, lake=self.lake, **values)

    def now(self) -> datetime:
        """In UTC, whatever the session's time zone is: the days of a lake are days in UTC."""
        moment: datetime = self.ask("clock")[0][0]
        return moment.astimezone(UTC)

    def ended_before(self, age: timedelta) -> date:
        """The day before which all days ended longer ago than ``age``."""
        return (self.now() - age).date()

    def batches(self, *states: str) -> list[Batch]:
        return [Batch(*row) for row in self.ask("batches", states=list(states or STATES))]

    def files(self) -> list[CatalogFile]:
        return [CatalogFile(*row) for row in self.ask("files")]

    def last(self) -> tuple[int, Position]:
        """The number of the last batch, and where it ends."""
        rows = self.ask("last_batch")
        return (rows[0][0], (rows[0][1], rows[0][2])) if rows else (-1, START)

    def behind(self, start: Position) -> tuple[int, datetime | None, int]:
        """How many rows of history come after ``start``, since when, and how many of them may not
        be read yet."""
        count, since, unsettled = self.ask("behind", from_xid=start[0], from_id=start[1])[0]
        return count, since, unsettled or 0

    def count_rows(self, batch: Batch) -> int:
        """How many rows of a batch the history still has."""
        return int(self.ask("count_rows", **batch.range)[0][0])

    def history_rows(self, batch: Batch) -> pa.Table:
        return self.fetch("history_rows", HISTORY, rows=batch.rows, **batch.range)

    def live_rows(self, seen_at: datetime) -> pa.Table:
        """Messages that have not ended."""
        return self.fetch("live_rows", LIVE, seen_at=seen_at)

    def queue_stats(self) -> dict[str, dict[str, int]]:
        """The queue's own counts, by queue and state."""
        states = ("waiting", "scheduled", "leased", "dead")
        return {
            queue: dict(zip(states, counts, strict=True))
            for queue, *counts in self.ask("queue_stats")
        }

    def readers(self) -> list[RegisteredStream]:
        """The registered streams, the slowest first; there are some on PostgreSQL only."""
        return [RegisteredStream(*row) for row in self.ask("readers")]

    def forget_reader(self, name: str) -> bool:
        """Nothing is kept for that stream any more; False if there is none of that name."""
        return False

    def history_kept(self) -> str:
        """How much history the queue keeps: all, failures or none."""
        return str(self.ask("settings")[0][0])

    def mark(self, batch: Batch, before: str, state: str) -> None:
        self.tell("mark", before=before, state=state, **batch.totals)

    def note_written(self, batch: Batch, files: Sequence[CatalogFile]) -> bool:
        """Records the files of a planned batch; False if another sync has done so."""
        with self.transaction() as store:
            change = {"before": "planned", "state": "written", **batch.totals}
            if not store.tell("mark", lake=self.lake, **change):
                return False
            for file in files:
                store.tell("note_file", lake=self.lake, **file._asdict())
        return True

    def note_compacted(self, merged: CatalogFile) -> bool:
        """Records a file in place of those that it replaces; False if they are not there any more,
        because another compaction was faster."""
        paths = merged.replaces or []
        try:
            with self.transaction() as store:
                if store.tell("forget_files", lake=self.lake, paths=paths) != len(paths):
                    raise _Overtaken
                store.tell("note_compacted", lake=self.lake, **merged._asdict())
        except _Overtaken:
            return False
        return True

    def note_erased(
        self, file: CatalogFile, kept: CatalogFile | None, gone: Mapping[Batch, Checked]
    ) -> bool:
        """Records what is left of a file; ``gone`` are the rows and the checksum that its batches
        have lost. False if somebody else has changed the file or a batch meanwhile."""
        try:
            with self.transaction() as store:
                if store.tell("forget_file", lake=self.lake, **file._asdict()) != 1:
                    raise _Overtaken
                if kept is not None:
                    store.tell("note_compacted", lake=self.lake, **kept._asdict())
                for batch, (rows, checksum) in gone.items():
                    self._correct(store, batch, (batch.rows - rows, batch.checksum - checksum))
        except _Overtaken:
            return False
        return True

    def correct(self, batch: Batch, found: Checked) -> None:
        """A batch that is not written yet: the history has other rows since rows were erased."""
        if found != (batch.rows, batch.checksum):
            with suppress(_Overtaken), self.transaction() as store:
                self._correct(store, batch, found)

    def _correct(self, store: Store, batch: Batch, new: Checked) -> None:
        values = {"batch": batch.number, "old_rows": batch.rows, "old_checksum": batch.checksum}
        rows, checksum = new
        changed = store.tell(
            "correct_batch", lake=self.lake, rows=rows, checksum=checksum, **values
        )
        if changed != 1:
            raise _Overtaken

    def lakes(self) -> list[str]:
        """The names of all lakes of this queue."""
        return [str(row[0]) for row in self.ask("lakes")]

    def tenant_rows(self, tenant: Tenant) -> TenantRows:
        return TenantRows(*map(int, self.ask("tenant_rows", **tenant._asdict())[0]))

    def settle_file(self, path: str) -> None:
        """A compacted file is in place."""
        self.tell("settle_file", path=path)

    def replan(self, batches: Sequence[int], paths: Sequence[str]) -> None:
        """Lets the next sync write batches again; their files are forgotten."""
        with self.transaction() as store:
            store.tell("forget_files", lake=self.lake, paths=list(paths))
            store.tell("replan", lake=self.lake, batches=list(batches))


class _Overtaken(Exception):
    """Rolls the transaction back."""


def files_of(files: Sequence[CatalogFile], batch: int) -> list[CatalogFile]:
    """Those that have rows of a batch."""
    return [file for file in files if batch in file.batches]


def within(rows: pa.Table, batch: Batch) -> pa.Array:
    """Which rows are in the batch's range of positions."""
    after = _after(rows, batch.from_xid, batch.from_id)
    return pc.and_not(after, _after(rows, batch.to_xid, batch.to_id))


def _after(rows: pa.Table, xid: int, id: int) -> pa.Array:
    same = pc.and_(pc.equal(rows["xid"], xid), pc.greater(rows["id"], id))
    return pc.or_(pc.greater(rows["xid"], xid), same)


def open_catalog(url: str, schema: str, lake: str) -> Catalog:
    """Connects when it is used."""
    address = store_address(url, schema)
    if address.dialect == "postgresql":
        from .catalog_databases import PostgresqlCatalog

        return PostgresqlCatalog(address, lake)
    if address.dialect == "sqlite" and read_url(address.url).in_memory:
        raise InvalidOption(
            "a SQLite database in memory cannot have a lake: it is gone when its process ends"
        )
    from .catalog_databases import MysqlSqliteCatalog

    return MysqlSqliteCatalog(address, lake)
