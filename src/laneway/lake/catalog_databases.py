"""The catalog in each database: PostgreSQL computes checksums itself; for MySQL, MariaDB and SQLite
there are small statements, and checksums are computed here.
"""

import io
import json
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from laneway.client.sync.queue import Queue
from laneway.errors import LakeMismatch
from laneway.stores.arrow import fetch
from laneway.stores.postgresql import PostgresqlStore, open_postgresql
from laneway.stores.store import micros

from .catalog import START, Catalog, DayCount, Position, Tenant
from .columns import HISTORY, checksum

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

    def purge_day(self, day: date, force: bool = False) -> int | None:
        deleted: int | None = self.ask("purge_day", day=day, force=force)[0][0]
        return deleted

    def days(self, force: bool = False) -> list[DayCount]:
        return [DayCount(*row) for row in self.ask("days", force=force)]

    def erase_history(self, tenant: Tenant) -> int:
        for name in ("erase_keys", "erase_results", "erase_counts", "erase_operations"):
            self.tell(name, **tenant._asdict())
        return self.tell("erase_history", **tenant._asdict())

    def forget_reader(self, name: str) -> bool:
        return bool(self.ask("forget_reader", reader=name)[0][0] == "ok")

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


_PAGE = 20_000
_DELETED_AT_ONCE = 2_000
"""Rows of history deleted in one transaction: others can write in between."""
_DAY = 86_400_000_000
_ERASE_COUNTS = {
    "mysql": ("erase_counts", "uncount_sums", "keep_sums", "erase_sums"),
    "sqlite": ("erase_counts",),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MysqlSqliteCatalog(Catalog):
    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        with self.connected() as store:
            names, rows = store.ask_with_names(name, lake=self.lake, **values)
        return [tuple(map(_decoded, names, row)) for row in rows]

    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **values: Any) -> pa.Table:
        pages = []
        with self.connected() as store:
            for page in store.stream(name, _PAGE, **values):
                columns = zip(*page, strict=True)
                arrays = [_array(c, f.type) for c, f in zip(columns, schema, strict=True)]
                pages.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return pa.Table.from_batches(pages, schema)

    def plan(self, number: int, start: Position, rows: int) -> None:
        """Reads the rows to plan the batch; a sync reads them again to write it, so that the files
        are compared with something."""
        self._settle()
        begin = {"from_xid": start[0], "from_id": start[1]}
        found = self.ask("next_batch", rows=rows, **begin)
        if not found:
            return
        ends = {**begin, "to_xid": found[0][0], "to_id": found[0][1]}
        content = self.fetch("history_rows", HISTORY, **ends)
        edges = pc.min_max(content["ended_at"]).as_py()
        self.tell(
            "plan_batch",
            batch=number,
            rows=content.num_rows,
            checksum=checksum(content),
            first_ended_at=edges["min"],
            last_ended_at=edges["max"],
            planned_at=datetime.now(UTC),
            **ends,
        )

    def purge_day(self, day: date, force: bool = False) -> int | None:
        """Deletes the rows that every lake has verified. None if some rows of the day stay."""
        xid, last_id = self._verified_up_to()
        begins = micros(day)
        values = {"begins": begins, "ends": begins + _DAY, "to_xid": xid, "to_id": last_id}
        deleted = seen = 0
        # From the last id on: no index is by day, so this passes over the history once.
        while rows := self.ask("purgeable", seen=seen, limit=_DELETED_AT_ONCE, **values):
            ids = [row[0] for row in rows]
            self.tell("purge", ids=ids)
            deleted, seen = deleted + len(ids), ids[-1]
        left = self.ask("count_day", begins=begins, ends=begins + _DAY)[0][0]
        return None if left else deleted

    def days(self, force: bool = False) -> list[DayCount]:
        (xid, last_id), (_, last) = self._verified_up_to(), self.last()
        ends = {"to_xid": xid, "to_id": last_id, "last_xid": last[0], "last_id": last[1]}
        return [DayCount(*found) for found in self.ask("days", **ends)]

    def uncounted(self, before: date) -> datetime | None:
        self._settle()
        found = self.ask("uncounted", before=micros(before))[0][0]
        return None if found is None else _EPOCH + timedelta(microseconds=int(found))

    def mark_purged(self) -> None:
        for batch in self.batches("verified"):
            if not self.count_rows(batch):
                self.mark(batch, "verified", "purged")

    def erase_history(self, tenant: Tenant) -> int:
        for name in ("erase_keys", "erase_results", "erase_operations"):
            self.tell(name, **tenant._asdict())
        with self.transaction() as store:
            for name in _ERASE_COUNTS[self.address.dialect]:
                store.tell(name, **tenant._asdict())
        erased = seen = 0
        values = {**tenant._asdict(), "limit": _DELETED_AT_ONCE}
        while rows := self.ask("erasable", seen=seen, **values):
            ids = [row[0] for row in rows]
            self.tell("purge", ids=ids)
            erased, seen = erased + len(ids), ids[-1]
        return erased

    def load(self, rows: pa.Table, day: date) -> None:
        names = [name for name in HISTORY.names if name not in ("id", "xid")]
        columns = [_stored(rows[name]) for name in names]
        values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        with self.transaction() as store:
            store.tell_many("load", values)

    def _verified_up_to(self) -> Position:
        """Up to where every lake of the queue has the history, verified."""
        ends: dict[str, Position] = {}
        unverified: set[str] = set()
        for lake, from_xid, from_id, to_xid, to_id, state in self.ask("all_batches"):
            if lake in unverified:
                continue
            verified = state in ("verified", "purged")
            ends[lake] = (to_xid, to_id) if verified else (from_xid, from_id)
            unverified |= set() if verified else {lake}
        return min(ends.values(), default=(0, 0)) if self.lake in ends else (0, 0)

    def _settle(self) -> None:
        """Lets MySQL stamp committed rows with their position; does nothing on SQLite."""
        with Queue(self.address.url, schema=self.address.schema, upkeep_every=None) as queue:
            before = ""
            while (position := queue.history_since().position) != before:
                before = position


def _decoded(name: str, value: Any) -> Any:
    """A value as Python's own type, by the name of its column."""
    if isinstance(value, bytes):
        value = value.decode()
    if value is None:
        return None
    if name in ("batches", "replaces"):
        return json.loads(value)
    if name == "checksum":
        return Decimal(value)
    if name == "day":
        return _EPOCH.date() + timedelta(microseconds=int(value))
    if name.endswith("_at"):
        return _EPOCH + timedelta(microseconds=int(value))
    return int(value) if isinstance(value, Decimal) else value


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([bool(value) for value in values], kind)
    if pa.types.is_string(kind):
        return pa.array([v.decode() if isinstance(v, bytes) else v for v in values], kind)
    return pa.array(values, kind)


def _stored(column: pa.ChunkedArray) -> list[Any]:
    """Values as the tables keep them: times are microseconds."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
