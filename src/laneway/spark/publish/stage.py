"""One attempt of one task: its rows go into a staging table of their own, in one transaction.

Arrow batches in PostgreSQL's binary COPY format, column by column, without Python objects
for rows or values.

Computes the channel of each row in the tasks, which run in parallel.
"""

import sys
from array import array
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc

from laneway.errors import LanewayError
from laneway.spark.options import SparkOptions
from laneway.spark.store import transaction

from .fields import shaped


def placed(batch: pa.RecordBatch, queue: str, channel: str) -> pa.RecordBatch:
    """The batch with ``queue``, ``channel`` and channel ids filled in. Rows of a channel are next
    to each other, in order, so that publishing writes to few pages of an index. With keys all
    rows stay where they are: of two rows with one key the first is published."""
    queues, channels = _filled(batch, "queue", queue), _filled(batch, "channel", channel)
    pairs = pc.dictionary_encode(
        pc.add(
            pc.multiply(queues.indices.cast(pa.int64()), len(channels.dictionary)),
            channels.indices,
        )
    )
    ids = _ids(pairs.dictionary, queues.dictionary.to_pylist(), channels.dictionary.to_pylist())
    columns = {name: batch[name] for name in batch.schema.names} | {
        "queue": queues.dictionary.take(queues.indices),
        "channel": channels.dictionary.take(channels.indices),
        "channel_id": ids.take(pairs.indices),
    }
    filled = pa.RecordBatch.from_pydict(columns)
    if "key" in columns:
        return filled
    ranks = pc.rank(ids, tiebreaker="dense")
    return filled.take(pc.sort_indices(ranks.take(pairs.indices)))


def _ids(pairs: pa.Array, queues: list[str], channels: list[str]) -> pa.Array:
    indexes = (divmod(pair, len(channels)) for pair in pairs.to_pylist())
    return pa.array([channel_id(queues[q], channels[c]) for q, c in indexes], pa.binary())


@lru_cache(maxsize=100_000)
def channel_id(queue: str, channel: str) -> bytes:
    """The same as channel_id_v1 in the database."""
    return sha256(f"{len(queue)}:{queue}{channel}".encode()).digest()[:16]


def _filled(batch: pa.RecordBatch, name: str, default: str) -> pa.DictionaryArray:
    if name in batch.schema.names:
        return pc.dictionary_encode(pc.fill_null(batch[name], default))
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * batch.num_rows, pa.int32()), pa.array([default])
    )


HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
_CODES = {2: "h", 4: "i", 8: "q"}
# PostgreSQL's timestamps count from the year 2000.
_EPOCH = 946_684_800_000_000


def as_copy(batch: pa.RecordBatch) -> memoryview:
    """The rows of a batch: for each row the number of its fields, then length and bytes of each.

    Joining these columns leaves all rows one after the other in one buffer, as COPY reads them."""
    parts = [pa.scalar(batch.num_columns.to_bytes(2, "big"), pa.large_binary())]
    for column in batch.columns:
        parts += _field(column)
    rows = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[rows.offset] : ends[rows.offset + len(rows)]]


def _field(column: pa.Array) -> list[pa.Array]:
    """The lengths of a column's values (-1 for null), and the values."""
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


class JobIsOver(LanewayError):
    """Spark gave up the job, or another attempt of the task was faster."""


def stage(
    options: SparkOptions,
    job: str,
    attempt: int,
    batches: Iterator[pa.RecordBatch],
    *,
    opened: bool,
) -> tuple[str | None, int]:
    """Returns the table's name, None if there are no rows, and the number of rows. An ``opened``
    job may end before this attempt does: then it leaves nothing behind."""
    ready = _ready(options, batches)
    first = next(ready, None)
    if first is None:
        return None, 0
    with transaction(options.address) as store:
        name: str = store.ask("stage", job=job, attempt=attempt)[0][0]
        rows = first.num_rows
        with store.copy("copy_in", table=name, columns=first.schema.names) as copy:
            copy.write(HEAD)
            copy.write(as_copy(first))
            for batch in ready:
                copy.write(as_copy(batch))
                rows += batch.num_rows
            copy.write(TAIL)
        if opened and not store.ask("keep_staged", job=job)[0][0]:
            raise JobIsOver("the job ended before this attempt did: its rows are not needed")
    return name, rows


def _ready(options: SparkOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    queue, channel = options["queue"] or "default", options["channel"] or "default"
    for batch in batches:
        if batch.num_rows:
            yield placed(shaped(batch, options["max_payload"]), queue, channel)
