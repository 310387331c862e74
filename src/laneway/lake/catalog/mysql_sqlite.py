"""The catalog in MySQL, MariaDB and SQLite: small statements; checksums are computed here."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laneway.client.sync.queue import Queue
from laneway.lake.columns import HISTORY, checksum
from laneway.stores.fill import micros

from .catalog import Catalog, DayCount, Position

_PAGE = 20_000
_DELETED_AT_ONCE = 2_000
"""Rows of history deleted in one transaction: others can write in between."""
_DAY = 86_400_000_000
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

    def purge_day(self, day: date) -> int | None:
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

    def days(self) -> list[DayCount]:
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
