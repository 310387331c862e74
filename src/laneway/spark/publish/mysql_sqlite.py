"""Bulk publish on MySQL, MariaDB and SQLite: tasks fill staging tables, and the driver publishes
all of them with the library, in one transaction."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.types import StructType

from laneway.client.sync.queue import Queue
from laneway.drivers.errors import must_repeat
from laneway.errors import InvalidPayload, LanewayError, PublishRefused
from laneway.model import NewMessage
from laneway.spark.errors import JobIsOver, brief_errors
from laneway.spark.options import SparkOptions
from laneway.spark.store import connected_to_any
from laneway.stores import Store

from .fields import LENGTHS, TIMES, check_columns, content_type
from .values import all_shaped, headers
from .writer import Messages, Staged, staged_parts, task_context

if TYPE_CHECKING:
    import pyarrow

_CHUNK = 2_000
_TRIES = 10
_MARK = "_job"
_REMEMBERED = timedelta(days=3650)
# A driver that has not committed by then is considered dead.
_DEAD_AFTER = timedelta(days=2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = (
    *("place", "payload", "queue", "channel", "kind", "content_type", "headers", "key"),
    *(
        "key_scope",
        "key_window",
        "priority",
        "delay",
        "at",
        "expires_in",
        "expires_at",
        "max_attempts",
    ),
)
_EMPTY = dict.fromkeys(_COLUMNS)


@brief_errors
class MysqlSqliteWriter(DataSourceArrowWriter):
    """Publishes a frame: all of it or nothing."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        check_columns(schema)
        self.options = options
        self.content_type = options["content_type"] or content_type(schema)
        # The time is part of the name, so that a sweep knows how old a table is.
        self.job = f"staged_{int(time.time()):x}_{secrets.token_hex(4)}"
        # While this table is there, the job has not ended; fails before any task runs if the
        # database cannot be reached.
        self.mark = f"{self.job}{_MARK}"
        with connected_to_any(options.address) as store:
            store.tell("create_staging", table=self.mark)

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Staged:
        table = f"{self.job}_{task_context().taskAttemptId():x}"
        written = 0
        with connected_to_any(self.options.address) as store:
            for chunk in all_shaped(_chunks(iterator), self.options):
                if not written:
                    self._create(store, table)
                written = _fill(store, table, chunk, written)
        return Staged(self.job, table if written else None, written)

    def _create(self, store: Store, table: str) -> None:
        """A task that Spark has cancelled may come here when the job's tables were dropped."""
        store.tell("create_staging", table=table)
        if not staging_tables(store, self.mark):
            _drop(store, staging_tables(store, table))
            raise JobIsOver("the job ended before this attempt did: its rows are not needed")

    def commit(self, messages: Messages) -> None:
        parts = [part for part in staged_parts(messages) if part.table is not None]
        with connected_to_any(self.options.address) as store:
            for tried in range(1, _TRIES + 1):
                try:
                    self._publish(store, parts)
                    break
                except Exception as error:
                    if not must_repeat(error) or tried == _TRIES:
                        raise
            self._sweep(store)

    def abort(self, messages: Messages) -> None:
        with suppress(LanewayError), connected_to_any(self.options.address) as store:
            self._end(store)

    def _publish(self, store: Store, parts: list[Staged]) -> None:
        address, options = self.options.address, self.options
        key, connection = options["idempotency_key"], store.connection
        client = Queue(
            address.url,
            schema=address.schema,
            name=options["queue"] or "default",
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
        if "key" not in fields:
            fields.pop("key_scope", None)
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

    def _end(self, store: Store) -> None:
        """The mark first: whoever creates a table after that finds that the job is over."""
        _drop(store, staging_tables(store, self.mark))
        _drop(store, staging_tables(store, self.job))

    def _sweep(self, store: Store) -> None:
        """Drops this job's tables, and what tasks of others left that have ended, or whose drivers
        are dead. A failure never fails the job."""
        with suppress(Exception):
            self._end(store)
            old = time.time() - _DEAD_AFTER.total_seconds()
            names = staging_tables(store)
            # Asked for afterwards: a mark is there before the tables of its job.
            jobs = {_job_of(name) for name in staging_tables(store) if name.endswith(_MARK)}
            _drop(store, [n for n in names if _job_of(n) not in jobs or _created_at(n) < old])


def staging_tables(store: Store, job: str = "staged_") -> list[str]:
    """The full names of the staging tables, of one job or of all."""
    return [row[0] for row in store.ask("staging_tables", start=f"{store.address.schema}_{job}")]


def _chunks(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    for batch in batches:
        for start in range(0, batch.num_rows, _CHUNK):
            yield batch.slice(start, _CHUNK)


def _drop(store: Store, tables: list[str]) -> None:
    for table in tables:
        store.tell("drop_staged", table=table)


def _fill(store: Store, table: str, batch: "pyarrow.RecordBatch", written: int) -> int:
    for name in TIMES:
        if (at := batch.schema.get_field_index(name)) >= 0:
            batch = batch.set_column(at, name, batch.column(at).cast("int64"))
    rows = [{**_EMPTY, **row, "place": written + n} for n, row in enumerate(batch.to_pylist(), 1)]
    with store.transaction():
        store.tell_many("fill_staging", rows, table=table)
    return written + len(rows)


def _staged(store: Store, table: str) -> Iterator[list[dict[str, Any]]]:
    after = 0
    while rows := store.ask("staged_rows", table=table, after=after, rows=_CHUNK):
        yield [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        after = rows[-1][0]


def _publish_all(client: Queue, drafts: list[NewMessage], channel: str, connection: object) -> None:
    try:
        client.publish_many(drafts, channel=channel, connection=connection)
    except PublishRefused as error:
        raise type(error)(f"{error}: nothing of the job was published") from None


def _job_of(table: str) -> str:
    return table.rpartition("_")[0]


def _created_at(table: str) -> int:
    return int(table.rpartition("staged_")[2].partition("_")[0], 16)
