"""The books in MySQL, MariaDB and SQLite: small statements, sums are made here."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.sync_queue import Queue
from penstock.drivers.choice import driver_of
from penstock.drivers.faults import translated
from penstock.errors import PenstockError

from .books import Books, DayCount, Place
from .checksum import checksum
from .columns import HISTORY
from .plain_driver import Dialect, dialect_of
from .plain_text import filled, read

_PAGE = 20_000
_GOES = 2_000
"""Rows of history that go in one transaction: others write in between."""
_DAY = 86_400_000_000


class PlainBooks(Books):
    @contextmanager
    def transaction(self) -> Iterator[Any]:
        try:
            with self._dialect.connection(self.url) as connection:
                yield connection
        except PenstockError:
            raise
        except self._dialect.faults as error:
            raise translated(error, self.url) from None

    def ask_on(self, connection: Any, name: str, **blanks: Any) -> list[tuple[Any, ...]]:
        cursor = self._execute(connection, name, blanks)
        if cursor.description is None:
            return []
        names = [column[0] for column in cursor.description]
        return [read(names, row) for row in cursor.fetchall()]

    def tell_on(self, connection: Any, name: str, **blanks: Any) -> int:
        return int(self._execute(connection, name, blanks).rowcount)

    def fetch(self, name: str, schema: pa.Schema, rows: int = 0, **blanks: Any) -> pa.Table:
        pages = []
        with self.transaction() as connection:
            cursor = self._execute(connection, name, blanks, streamed=True)
            while page := cursor.fetchmany(_PAGE):
                columns = zip(*page, strict=True)
                arrays = [_array(c, f.type) for c, f in zip(columns, schema, strict=True)]
                pages.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return pa.Table.from_batches(pages, schema)

    def plan(self, number: int, start: Place, rows: int) -> None:
        """What the range holds is read once to plan it and once to write it, so that the files are
        compared with something."""
        self._settle()
        begin = {"from_xid": start[0], "from_id": start[1]}
        found = self.ask("next_batch", rows=rows, **begin)
        if not found:
            return
        ends = {**begin, "to_xid": found[0][0], "to_id": found[0][1]}
        content = self.fetch("columns", HISTORY, **ends)
        edges = pc.min_max(content["ended_at"]).as_py()
        self.ask(
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
        """Row by row what every lake holds for certain. None if something of the day stays."""
        xid, row = self._safe()
        begins = _micros(day)
        about = {"begins": begins, "ends": begins + _DAY, "to_xid": xid, "to_id": row}
        gone = seen = 0
        # From the last one on: no index knows the days, and one walk over the history is enough.
        while ids := [row[0] for row in self.ask("purgeable", seen=seen, limit=_GOES, **about)]:
            self.ask("purge", ids=ids)
            gone, seen = gone + len(ids), ids[-1]
        left = self.ask("left", begins=begins, ends=begins + _DAY)[0][0]
        return None if left else gone

    def days(self) -> list[DayCount]:
        (xid, row), (_, last) = self._safe(), self.last()
        ends = {"to_xid": xid, "to_id": row, "last_xid": last[0], "last_id": last[1]}
        return [DayCount(*found) for found in self.ask("days", **ends)]

    def mark_purged(self) -> None:
        for batch in self.batches("verified"):
            if not self.ask("count_batch", **batch.range)[0][0]:
                self.mark(batch, "verified", "purged")

    def load(self, rows: pa.Table, day: date) -> None:
        names = [name for name in HISTORY.names if name not in ("id", "xid")]
        text, _ = self._filled("load", dict.fromkeys(names))
        columns = [_raw(rows[name]) for name in names]
        values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        with self.transaction() as connection:
            connection.cursor().executemany(text, values)

    def _safe(self) -> Place:
        """Up to where every lake of the queue holds the history, verified."""
        ends: dict[str, Place] = {}
        doubtful: set[str] = set()
        for lake, from_xid, from_id, to_xid, to_id, state in self.ask("places"):
            if lake in doubtful:
                continue
            sure = state in ("verified", "purged")
            ends[lake] = (to_xid, to_id) if sure else (from_xid, from_id)
            doubtful |= set() if sure else {lake}
        return min(ends.values(), default=(0, 0)) if self.lake in ends else (0, 0)

    def _settle(self) -> None:
        """Stamps what was committed, where a stamp gives the order; elsewhere it does nothing."""
        with Queue(self.url, schema=self.schema, upkeep_every=None) as queue:
            before = ""
            while (position := queue.history_since().position) != before:
                before = position

    @property
    def _dialect(self) -> Dialect:
        return dialect_of(driver_of(self.url).dialect)

    def _execute(
        self, connection: Any, name: str, blanks: dict[str, Any], streamed: bool = False
    ) -> Any:
        text, values = self._filled(name, blanks)
        cursor = self._dialect.cursor(connection, streamed)
        cursor.execute(text, values)
        return cursor

    def _filled(self, name: str, blanks: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return filled(self._dialect, self.schema, name, {"lake": self.lake, **blanks})


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([bool(value) for value in values], kind)
    if pa.types.is_string(kind):
        return pa.array([v.decode() if isinstance(v, bytes) else v for v in values], kind)
    return pa.array(values, kind)


def _raw(column: pa.ChunkedArray) -> list[Any]:
    """As the tables keep it: times are microseconds."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _micros(day: date) -> int:
    return (day - date(1970, 1, 1)) // timedelta(microseconds=1)
