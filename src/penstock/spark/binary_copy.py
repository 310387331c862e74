"""Arrow batches as PostgreSQL's binary COPY, column by column: no row is ever a Python object."""

import sys
from array import array

import pyarrow as pa
import pyarrow.compute as pc

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
_CODES = {2: "h", 4: "i", 8: "q"}
# PostgreSQL counts from the year 2000.
_EPOCH = 946_684_800_000_000


def as_copy(batch: pa.RecordBatch) -> memoryview:
    """The rows of a batch: of each the number of its fields, then length and bytes of each field.

    Joining them leaves all rows side by side in one buffer, which is what COPY wants to read."""
    parts = [pa.scalar(batch.num_columns.to_bytes(2, "big"), pa.large_binary())]
    for column in batch.columns:
        parts += _field(column)
    rows = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[rows.offset] : ends[rows.offset + len(rows)]]


def _field(column: pa.Array) -> list[pa.Array]:
    """Its lengths (-1 is null) and its values."""
    values = column.cast(pa.large_binary()) if _is_bytes(column.type) else _number(column)
    lengths = pc.fill_null(pc.binary_length(values), -1).cast(pa.int32())
    return [_big_endian(lengths), pc.fill_null(values, b"")]


def _is_bytes(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def _number(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = pc.subtract(column.cast(pa.int64()), _EPOCH)
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
