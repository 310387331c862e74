"""Bulk publish and the publish sink: tasks stage, the driver's commit moves all of it at once."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from penstock.contract import DEFAULT_MAX_ATTEMPTS
from penstock.errors import BacklogFull, ChannelClosed, InvalidOption, PenstockError

from .connections import ask, connected
from .gathering import gathered, in_portions, unique
from .options import Options
from .shaping import check_columns, content_type
from .staged import Messages, Staged, staged_parts
from .staging import stage

if TYPE_CHECKING:
    import pyarrow

# A driver that takes longer to commit is taken for dead.
_DEAD_AFTER = timedelta(days=2)
_REFUSALS: dict[str, type[PenstockError]] = {"PNF01": BacklogFull, "PNC01": ChannelClosed}
# Spark tells tasks of a stream which query and batch they work for only through these.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


class _Writing:
    """What both writers share."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(schema)
        self.options = options
        self.content_type = options["content_type"] or content_type(schema)

    def _stage(self, job: str, batches: Iterator["pyarrow.RecordBatch"], *, opened: bool) -> Staged:
        attempt = unique(task_context().taskAttemptId())
        table, rows = stage(self.options, job, attempt, batches, opened=opened)
        return Staged(job, table, rows)

    def _publish(self, job: str, staged: list[Staged], source: str | None, batch: int) -> None:
        brought = [part for part in staged if part.table is not None]
        filled = gathered(self.options.address, brought)
        with connected(self.options.address) as connection:
            try:
                ask(
                    connection,
                    "publish_staged",
                    job=job,
                    names=[part.table for part in filled],
                    counts=[part.rows for part in filled],
                    source=source,
                    batch=batch,
                    **self._defaults(),
                )
            except psycopg.Error as error:
                refusal = _REFUSALS.get(error.sqlstate or "")
                if refusal is None:
                    raise
                raise refusal(error.diag.message_primary or "") from None
        self._sweep(job, timedelta(0))
        self._sweep(None, _DEAD_AFTER)

    def _sweep(self, job: str | None, older: timedelta) -> None:
        """Tidying up is never a reason to fail: what is left now is found by the next job."""

        def drop() -> int:
            with connected(self.options.address) as connection:
                rows = ask(connection, "unstage", schema=self._schema, job=job, older=older)
            return int(rows[0][0])

        with suppress(PenstockError):
            in_portions(drop)

    def _defaults(self) -> dict[str, Any]:
        options = self.options
        return {
            "schema": self._schema,
            "kind": options["kind"] or "",
            "content_type": self.content_type,
            "priority": options["priority"] or 0,
            "max_attempts": options["max_attempts"] or DEFAULT_MAX_ATTEMPTS,
        }

    @property
    def _schema(self) -> str:
        return self.options.address.schema


class PenstockWriter(_Writing, DataSourceArrowWriter):
    """One frame into the queue, all of it or nothing."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self.job = secrets.token_hex(16)
        key = options["idempotency_key"]
        self.source = None if key is None else f"key {key}"
        self.repeated = self._known_or_open()

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Staged:
        if self.repeated:
            return Staged(self.job, None, 0)
        return self._stage(self.job, iterator, opened=True)

    def commit(self, messages: Messages) -> None:
        self._publish(self.job, staged_parts(messages), self.source, 0)

    def abort(self, messages: Messages) -> None:
        self._sweep(self.job, timedelta(0))

    def _known_or_open(self) -> bool:
        """Also finds out before any task runs whether the database can be reached."""
        with connected(self.options.address) as connection:
            rows = ask(
                connection, "publication", schema=self._schema, source=self.source or "", batch=0
            )
            repeated = bool(rows[0][0])
            if not repeated:
                ask(connection, "open_job", schema=self._schema, job=self.job)
        return repeated


class PenstockStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Each batch of a stream into the queue, exactly once by (query, batch)."""

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> Staged:
        context = task_context()
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise InvalidOption(
                "Spark does not say which query and batch this task works for, so a replay could "
                "not be recognised: this version of Spark cannot publish from a stream"
            )
        # Not opened: after an abort the same batch comes again, and sweeps what the first left.
        staged = self._stage(f"{query} {batch}", iterator, opened=False)
        staged.query, staged.batch = query, int(batch)
        return staged

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        parts = staged_parts(messages)
        if not parts:
            return
        first = parts[0]
        if {(part.query, part.batch) for part in parts} != {(first.query, batchId)}:
            raise InvalidOption(f"tasks of other batches answered for batch {batchId}")
        self._publish(first.job, parts, f"query {first.query}", batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        for job in {part.job for part in staged_parts(messages)}:
            self._sweep(job, timedelta(0))


def task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise InvalidOption("this can only be written by a task of Spark")
    return context
