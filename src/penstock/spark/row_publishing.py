"""Bulk publish into MySQL, MariaDB and SQLite: tasks stage, the driver publishes all of it with the
library, in one transaction."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.types import StructType

from penstock.client.sync_queue import Queue
from penstock.drivers.faults import must_repeat
from penstock.errors import InvalidPayload, PenstockError, PublishRefused
from penstock.model import NewMessage

from .options import Options
from .publishing import task_context
from .row_store import RowStore, row_store
from .shaping import check_columns, content_type, shaped
from .staged import Messages, Staged, staged_parts
from .values import LENGTHS, TIMES, headers

if TYPE_CHECKING:
    import pyarrow

_PORTION = 2_000
_TRIES = 10
_REMEMBERED = timedelta(days=3650)
# A driver that takes longer to commit is taken for dead.
_DEAD_AFTER = timedelta(days=2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RowWriter(DataSourceArrowWriter):
    """One frame into the queue, all of it or nothing."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(schema)
        self.options = options
        self.content_type = options["content_type"] or content_type(schema)
        # The time is in the name, so that whoever sweeps knows how old a table is.
        self.job = f"staged_{int(time.time()):x}_{secrets.token_hex(4)}"
        with row_store(options.address):
            pass  # the database can be reached, before any task runs

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Staged:
        name = f"{self.job}_{task_context().taskAttemptId():x}"
        place = 0
        with row_store(self.options.address) as store:
            table = store.named(name)
            for batch in iterator:
                for start in range(0, batch.num_rows, _PORTION):
                    portion = shaped(batch.slice(start, _PORTION), self.options["max_payload"])
                    if not place:
                        store.create(table)
                    place = _fill(store, table, portion, place)
        return Staged(self.job, name if place else None, place)

    def commit(self, messages: Messages) -> None:
        parts = [part for part in staged_parts(messages) if part.table is not None]
        with row_store(self.options.address) as store:
            for tried in range(1, _TRIES + 1):
                try:
                    self._publish(store, parts)
                    break
                except Exception as error:
                    if not must_repeat(error) or tried == _TRIES:
                        raise
            self._sweep(store)

    def abort(self, messages: Messages) -> None:
        with suppress(PenstockError), row_store(self.options.address) as store:
            store.drop(store.tables(self.job))

    def _publish(self, store: RowStore, parts: list[Staged]) -> None:
        address, options = self.options.address, self.options
        key, connection = options["idempotency_key"], store.connection
        client = Queue(
            address.url,
            schema=address.schema,
            queue=options["queue"] or "default",
            max_payload=options["max_payload"],
            upkeep_every=None,
        )
        with client, store.transaction():
            if key is not None and not client.once(
                connection, f"spark {key}", queue="spark", keep=_REMEMBERED
            ):
                return
            for part in parts:
                count = 0
                for rows in _staged(store, str(part.table)):
                    drafts = [self._message(row) for row in rows]
                    count += len(drafts)
                    _publish_all(client, drafts, options["channel"] or "default", connection)
                if count != part.rows:
                    raise InvalidPayload(
                        f"a task staged {part.rows} rows, {count} are left: run the job again"
                    )

    def _message(self, row: Mapping[str, Any]) -> NewMessage:
        fields = {name: value for name, value in row.items() if value is not None}
        fields.pop("place")
        for name in TIMES:
            if name in fields:
                fields[name] = _EPOCH + timedelta(microseconds=fields[name])
        for name in LENGTHS:
            if name in fields:
                fields[name] = timedelta(microseconds=fields[name])
        if "headers" in fields:
            fields["headers"] = headers(fields["headers"])
        options = self.options
        defaults = {
            "kind": options["kind"] or "",
            "priority": options["priority"] or 0,
            "max_attempts": options["max_attempts"],
            "content_type": self.content_type,
        }
        return NewMessage(**{**defaults, **fields})

    def _sweep(self, store: RowStore) -> None:
        """This job's tables, and what dead drivers left. Tidying up is no reason to fail."""
        with suppress(Exception):
            store.drop(store.tables(self.job))
            old = time.time() - _DEAD_AFTER.total_seconds()
            store.drop([name for name in store.tables("staged_") if _made_at(name) < old])


def _fill(store: RowStore, table: str, batch: "pyarrow.RecordBatch", place: int) -> int:
    for name in TIMES:
        if (at := batch.schema.get_field_index(name)) >= 0:
            batch = batch.set_column(at, name, batch.column(at).cast("int64"))
    columns = ["place", *batch.schema.names]
    rows = [{"place": place + n, **row} for n, row in enumerate(batch.to_pylist(), 1)]
    with store.transaction():
        store.tell(
            "fill",
            rows,
            table=table,
            columns=", ".join(f"`{name}`" for name in columns),
            values=", ".join(f"%({name})s" for name in columns),
        )
    return place + len(rows)


def _staged(store: RowStore, name: str) -> Iterator[list[dict[str, Any]]]:
    table, after = store.named(name), 0
    columns = (
        *("place", "payload", "queue", "channel", "kind", "content_type", "headers", "key"),
        *("key_window", "priority", "delay", "at", "expires_in", "expires_at", "max_attempts"),
    )
    while rows := store.ask("staged", {"after": after, "rows": _PORTION}, table=table):
        yield [dict(zip(columns, row, strict=True)) for row in rows]
        after = rows[-1][0]


def _publish_all(client: Queue, drafts: list[NewMessage], channel: str, connection: object) -> None:
    try:
        client.publish_many(drafts, channel=channel, connection=connection)
    except PublishRefused as error:
        raise type(error)(f"{error}: nothing of the job was published") from None


def _made_at(table: str) -> int:
    return int(table.rpartition("staged_")[2].partition("_")[0], 16)
