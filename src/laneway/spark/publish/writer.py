"""Bulk publish and the publish sink on PostgreSQL, and what their tasks report to the driver.

The tasks of a frame load the table of messages, and the driver's commit publishes what they have
loaded. The tasks of a stream's batch fill staging tables, which the commit moves: its batches are
small, and a batch that is tried again needs no driver that lived all along.

The staging tables of a batch with many partitions are merged before they are published: a
transaction holds a lock on each table that it reads or drops, and a server has room for a few
thousand locks in all.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from laneway.contract import DEFAULT_MAX_ATTEMPTS
from laneway.errors import BacklogFull, ChannelClosed, InvalidOption, LanewayError
from laneway.spark.errors import brief_errors
from laneway.spark.options import SparkOptions
from laneway.spark.store import connected, transaction
from laneway.stores import StoreAddress
from laneway.stores.postgresql import PostgresqlStore

from .fields import check_columns, content_type
from .keeper import end, keep

if TYPE_CHECKING:
    import pyarrow


@dataclass
class Staged(WriterCommitMessage):
    """The staging table of one task; ``table`` is None if it had no rows."""

    job: str
    table: str | None
    rows: int
    query: str | None = None
    batch: int | None = None


@dataclass
class Loaded(WriterCommitMessage):
    """The parts that one task of a frame has loaded."""

    parts: list[int]
    rows: int


Messages = Sequence[WriterCommitMessage | None]


def loaded_parts(messages: Messages) -> list[int]:
    return [part for one in messages if isinstance(one, Loaded) for part in one.parts]


def staged_parts(messages: Messages) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]


AT_ONCE = 200
_SWEPT = 20_000
T = TypeVar("T")


def merged(address: StoreAddress, parts: Sequence[Staged]) -> list[Staged]:
    """The same rows in at most ``AT_ONCE`` tables; each merge is a transaction of its own. If the
    driver dies in between, its tables are swept like all other staging tables."""
    found = list(parts)
    while len(found) > AT_ONCE:
        found = [_merge(address, chunk) for chunk in _chunks(found)]
    return found


def repeat(work: Callable[[], int], at_once: int) -> None:
    """Calls it until it does less than it could at a time."""
    while work() >= at_once:
        pass


def sweep(store: PostgresqlStore, job: str | None, older: timedelta) -> None:
    """A failed clean-up never fails the job: the next job, or a worker's upkeep, finds what is
    left."""
    with suppress(LanewayError, psycopg.Error):
        repeat(lambda: int(store.ask("unstage", job=job, older=older)[0][0]), AT_ONCE)
        repeat(lambda: int(store.ask("sweep_staged", most=_SWEPT)[0][0]), _SWEPT)


def unique(attempt: int) -> int:
    """A number for an attempt that no other driver has used: each counts its attempts from 0."""
    return attempt << 32 | secrets.randbits(32)


def _chunks(parts: list[T]) -> list[list[T]]:
    return [parts[n : n + AT_ONCE] for n in range(0, len(parts), AT_ONCE)]


def _merge(address: StoreAddress, parts: list[Staged]) -> Staged:
    first, names = parts[0], [str(part.table) for part in parts]
    with transaction(address) as store:
        table: str = store.ask("stage", job=first.job, attempt=unique(0))[0][0]
        rows = " union all ".join(store.text("staged_rows", table=name) for name in names)
        store.tell("merge_staged", table=table, rows=rows)
        store.tell("drop_staged", tables=names)
        store.tell("forget_staged", names=names)
    return replace(first, table=table, rows=sum(part.rows for part in parts))


# A stream's driver that has not committed a batch by then is considered dead.
_DEAD_AFTER = timedelta(days=2)
_REFUSALS: dict[str, type[LanewayError]] = {"PNF01": BacklogFull, "PNC01": ChannelClosed}
# The only way in which Spark tells the tasks of a stream their query and batch.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


class _Writer:
    """Common to both writers."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        check_columns(schema)
        self.options = options
        self.content_type = options["content_type"] or content_type(schema)

    def _defaults(self) -> dict[str, Any]:
        options = self.options
        return {
            "kind": options["kind"] or "",
            "content_type": self.content_type,
            "priority": options["priority"] or 0,
            "max_attempts": options["max_attempts"] or DEFAULT_MAX_ATTEMPTS,
        }

    def _sweep(self, job: str | None, older: timedelta) -> None:
        with suppress(LanewayError), connected(self.options.address) as store:
            sweep(store, job, older)


@brief_errors
class LanewayWriter(_Writer, DataSourceArrowWriter):
    """Publishes a frame: all of it or nothing."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.job = secrets.token_hex(16)
        key = options["idempotency_key"]
        self.source = None if key is None else f"key {key}"
        self.repeated = self._known_or_open()

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Loaded:
        if self.repeated:
            return Loaded([], 0)
        from .load import load

        return Loaded(*load(self.options, self.job, self._defaults(), iterator))

    def commit(self, messages: Messages) -> None:
        if self.repeated:
            return
        with connected(self.options.address) as store:
            with _refusals():
                parts = loaded_parts(messages)
                store.ask("publish_parts", job=self.job, parts=parts, source=self.source)
            end(self.keeper)
            sweep(store, None, _DEAD_AFTER)

    def abort(self, messages: Messages) -> None:
        self._sweep(self.job, timedelta(0))
        if not self.repeated:
            end(self.keeper)

    def _known_or_open(self) -> bool:
        """Also makes sure that the database can be reached, before any task runs."""
        with connected(self.options.address) as store:
            repeated = bool(store.ask("publication", source=self.source or "", batch=0)[0][0])
            if not repeated:
                store.ask("open_job", job=self.job)
                self.keeper = keep(self.options.address.url, store.text("hold_job", job=self.job))
        return repeated


@brief_errors
class LanewayStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Publishes each batch of a stream exactly once, by (query, batch)."""

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Staged:
        context = task_context()
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise InvalidOption(
                "Spark does not tell this task its query and batch, so a replay could not be "
                "recognised: this version of Spark cannot publish from a stream"
            )
        from .stage import stage

        job, attempt = f"{query} {batch}", unique(context.taskAttemptId())
        table, rows = stage(self.options, job, attempt, iterator)
        return Staged(job, table, rows, query, int(batch))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        parts = staged_parts(messages)
        if not parts:
            return
        first = parts[0]
        if {(part.query, part.batch) for part in parts} != {(first.query, batchId)}:
            raise InvalidOption(f"the commit of batch {batchId} has tasks of other batches")
        self._publish(first.job, parts, f"query {first.query}", batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        for job in {part.job for part in staged_parts(messages)}:
            self._sweep(job, timedelta(0))

    def _publish(self, job: str, staged: list[Staged], source: str, batch: int) -> None:
        filled = [part for part in staged if part.table is not None]
        tables = merged(self.options.address, filled)
        with connected(self.options.address) as store, _refusals():
            store.ask(
                "publish_staged",
                job=job,
                names=[part.table for part in tables],
                counts=[part.rows for part in tables],
                source=source,
                batch=batch,
                **self._defaults(),
            )
        self._sweep(job, timedelta(0))
        self._sweep(None, _DEAD_AFTER)


@contextmanager
def _refusals() -> Iterator[None]:
    """What the database refuses because of a channel, as our own error."""
    try:
        yield
    except psycopg.Error as error:
        refusal = _REFUSALS.get(error.sqlstate or "")
        if refusal is None:
            raise
        raise refusal(error.diag.message_primary or "") from None


def task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise InvalidOption("only a task of Spark can write this")
    return context
