"""One attempt of one task: its rows into a staging table of their own, in one transaction."""

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from .connections import ask, connected, speaking
from .fetching import uses_adbc
from .options import Options
from .placing import placed
from .shaping import shaped
from .statements import statement


def stage(
    options: Options, job: str, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[str | None, int]:
    """The table's name and how many rows are in it; no rows need no table."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None, 0
    copy = _by_adbc if uses_adbc(options["transport"]) else _by_copy
    with speaking(options.address):
        return copy(options, job, attempt, _checked(options, first, batches))


def _checked(
    options: Options, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    queue, channel = options["queue"] or "default", options["channel"] or "default"
    for batch in _chain(first, rest):
        yield placed(shaped(batch, options["max_payload"]), queue, channel)


def _by_adbc(
    options: Options, job: str, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[str, int]:
    from adbc_driver_postgresql import dbapi

    schema = options.address.schema
    with dbapi.connect(options.address.url) as connection, connection.cursor() as cursor:
        cursor.execute(statement(None, "stage", schema=schema, job=job, attempt=attempt))
        name = cursor.fetchone()[0]
        first = next(batches)
        rows = [first.num_rows]

        def counted() -> Iterator[pa.RecordBatch]:
            yield first
            for batch in batches:
                rows.append(batch.num_rows)
                yield batch

        reader = pa.RecordBatchReader.from_batches(first.schema, counted())
        cursor.adbc_ingest(name, reader, mode="append", db_schema_name=schema)
        connection.commit()
    return name, sum(rows)


def _by_copy(
    options: Options, job: str, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[str, int]:
    schema = options.address.schema
    with connected(options.address) as connection:
        name: str = ask(connection, "stage", schema=schema, job=job, attempt=attempt)[0][0]
        rows = 0
        first = next(batches)
        blanks: dict[str, Any] = {"schema": schema, "table": name, "columns": first.schema.names}
        text = statement(connection, "copy_in", **blanks)
        with connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            for batch in _chain(first, batches):
                copy.write(_as_csv(batch))
                rows += batch.num_rows
    return name, rows


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _as_csv(batch: pa.RecordBatch) -> bytes:
    place = batch.schema.get_field_index("payload")
    written = batch.set_column(place, "payload", _as_text(batch["payload"]))
    place = batch.schema.get_field_index("channel_id")
    lanes = [value.hex() for value in batch["channel_id"].to_pylist()]
    written = written.set_column(place, "channel_id", pa.array(lanes, pa.string()))
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(written, buffer, pyarrow.csv.WriteOptions(include_header=False))
    return buffer.getvalue()


def _as_text(payload: pa.Array) -> pa.Array:
    """As PostgreSQL reads bytes: text with its backslashes doubled, or else hexadecimal."""
    try:
        text = payload.cast(pa.string())
    except pa.ArrowInvalid:
        text = None
    if text is not None and not pc.any(pc.match_substring(text, "\0")).as_py():
        return pc.replace_substring(text, "\\", "\\\\")
    return pa.array(["\\x" + value.hex() for value in payload.to_pylist()], pa.string())
