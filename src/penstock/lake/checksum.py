"""A checksum that adds up: the sum over the rows of a hash of all their columns.

The database computes the same from its own rows (plan_batch.sql), so what is compared is what was
read back from a file with what is in the history.
"""

import hashlib
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from .columns import HISTORY

# Rows whose texts are in memory at once: a file may hold a day of millions.
AT_ONCE = 5_000


def checksum(rows: pa.Table) -> Decimal:
    """Of rows with the columns of the history, in any order."""
    return checksum_of(rows.to_batches(max_chunksize=AT_ONCE))


def checksum_of(batches: Iterable[pa.RecordBatch]) -> Decimal:
    """The same, of rows that come a few at a time."""
    return Decimal(sum(map(_summed, batches)))


def _summed(batch: pa.RecordBatch) -> int:
    return sum(map(_hashed, _texts(batch.select(HISTORY.names)).to_pylist()))


def _hashed(text: str) -> int:
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:15], 16)


def _texts(batch: pa.RecordBatch) -> pa.Array:
    columns = [pc.fill_null(_text(column), "~") for column in batch.columns]
    return pc.binary_join_element_wise(*columns, "\x1f")


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string())
