"""One attempt of one task of a stream's batch: its rows go into a staging table of their own, in
one transaction.

Computes the channel of each row in the tasks, which run in parallel.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from laneway.engines.postgresql.publish import channel_id
from laneway.spark.options import SparkOptions
from laneway.spark.store import transaction

from .copying import HEAD, TAIL, as_copy
from .keys import with_key_names
from .values import all_shaped


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


def _filled(batch: pa.RecordBatch, name: str, default: str) -> pa.DictionaryArray:
    if name in batch.schema.names:
        return pc.dictionary_encode(pc.fill_null(batch[name], default))
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * batch.num_rows, pa.int32()), pa.array([default])
    )


def stage(
    options: SparkOptions, job: str, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[str | None, int]:
    """Returns the table's name, None if there are no rows, and the number of rows."""
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
    return name, rows


def _ready(options: SparkOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    queue, channel = options["queue"] or "default", options["channel"] or "default"
    for batch in all_shaped(batches, options):
        yield placed(with_key_names(batch, channel, options["kind"] or ""), queue, channel)
