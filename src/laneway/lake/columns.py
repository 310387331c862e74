"""The columns of the history (of the view ``history_v1``) as an Arrow schema.

A checksum that can be added up: the sum of a hash of all columns of each row.

PostgreSQL computes the same from its own rows (the statement ``plan_batch``), so that rows read
back from a file are compared with those in the history.
"""

import hashlib
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

INSTANT = pa.timestamp("us", tz="UTC")

HISTORY = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("xid", pa.int64(), nullable=False),
        pa.field("message_id", pa.int64(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("priority", pa.int16()),
        pa.field("attempt", pa.int64(), nullable=False),
        pa.field("fence", pa.int64()),
        pa.field("worker", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("error_type", pa.string()),
        pa.field("error", pa.string()),
        pa.field("first_published_at", INSTANT),
        pa.field("published_at", INSTANT),
        pa.field("due", INSTANT),
        pa.field("claimed_at", INSTANT),
        pa.field("started_at", INSTANT),
        pa.field("ended_at", INSTANT, nullable=False),
        pa.field("payload_size", pa.int64()),
        pa.field("terminal", pa.bool_(), nullable=False),
        pa.field("dead", pa.bool_(), nullable=False),
    ]
)

VERSIONS = (len(HISTORY),)
"""How many columns the history of each version had. New ones come at the end: files of an older
version stay as they are, and their checksums are of the columns that they have."""

LIVE = pa.schema(
    [
        pa.field("message_id", pa.int64(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("attempt", pa.int64(), nullable=False),
        pa.field("due", INSTANT),
        pa.field("claimed_at", INSTANT),
        pa.field("seen_at", INSTANT, nullable=False),
    ]
)
"""Messages that had not ended at ``seen_at``: waiting, scheduled, leased or dead. ``due`` is when
it became ready, which is never before it was published."""


# Rows converted to text at once: a file may have millions.
AT_ONCE = 5_000


def checksum(rows: pa.Table) -> Decimal:
    """Of rows with the columns of the history; the order of the rows does not matter."""
    return checksum_of(rows.to_batches(max_chunksize=AT_ONCE))


def checksum_of(batches: Iterable[pa.RecordBatch]) -> Decimal:
    """The same for rows that come a few at a time."""
    return Decimal(sum(map(_summed, batches)))


def has_known_columns(schema: pa.Schema) -> bool:
    """Whether they are those of the history, of this or an older version."""
    return len(schema) in VERSIONS and schema.names == HISTORY.names[: len(schema)]


def widened(rows: pa.Table) -> pa.Table:
    """With the columns of this version; those that an older one did not have are null."""
    for field in list(HISTORY)[rows.num_columns :]:
        rows = rows.append_column(field.with_nullable(True), pa.nulls(rows.num_rows, field.type))
    return rows


def _summed(batch: pa.RecordBatch) -> int:
    return sum(map(_hashed, _texts(batch).to_pylist()))


def _hashed(text: str) -> int:
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:15], 16)


def _texts(batch: pa.RecordBatch) -> pa.Array:
    columns = [pc.fill_null(_text(column), "~") for column in batch.columns]
    return pc.binary_join_element_wise(*columns, "\x1f")


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string())
