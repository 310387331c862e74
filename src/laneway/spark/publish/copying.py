"""Rows in PostgreSQL's binary COPY format, made of Arrow's columns, without Python objects for
rows or values."""

import sys
from array import array
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
# PostgreSQL's timestamps count from the year 2000.
PG_EPOCH = 946_684_800_000_000
_CODES = {2: "h", 4: "i", 8: "q"}


def as_copy(batch: pa.RecordBatch) -> memoryview:
    """The rows of a batch: for each row the number of its fields, then length and bytes of each."""
    count = pa.scalar(batch.num_columns.to_bytes(2, "big"), pa.large_binary())
    return joined([count, *row_fields(batch.columns)])


def joined(pieces: list[Any]) -> memoryview:
    """Joining these columns leaves all rows one after the other in one buffer, as COPY reads
    them."""
    rows = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[rows.offset] : ends[rows.offset + len(rows)]]


def row_fields(columns: Iterable[pa.Array]) -> list[pa.Array]:
    """For each column the lengths of its values (-1 for null), and the values."""
    return [piece for column in columns for piece in _field(column)]


def as_interval(micros: pa.Array) -> pa.Array:
    """Microseconds as the bytes of intervals: no days, no months."""
    zeros = pa.scalar(bytes(8), pa.large_binary())
    return pc.binary_join_element_wise(_number(micros), zeros, pa.scalar(b"", pa.large_binary()))


def _field(column: pa.Array) -> list[pa.Array]:
    values = column.cast(pa.large_binary()) if _is_bytes(column.type) else _number(column)
    lengths = pc.binary_length(values)
    if values.null_count:
        lengths, values = lengths.fill_null(-1), values.fill_null(b"")
    return [_big_endian(lengths.cast(pa.int32())), values]


def _is_bytes(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_large_binary(type)
    )


def _number(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = pc.subtract(column.cast(pa.int64()), PG_EPOCH)
    values = _big_endian(pc.fill_null(column, 0))
    if not column.null_count:
        return values
    return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.large_binary()))


def _big_endian(numbers: pa.Array) -> pa.Array:
    width = numbers.type.bit_width // 8
    start = numbers.offset * width
    swapped = array(_CODES[width])
    swapped.frombytes(memoryview(numbers.buffers()[1])[start : start + len(numbers) * width])
    if sys.byteorder == "little":
        swapped.byteswap()
    fixed = pa.Array.from_buffers(
        pa.binary(width), len(numbers), [None, pa.py_buffer(swapped.tobytes())]
    )
    return fixed.cast(pa.large_binary())
