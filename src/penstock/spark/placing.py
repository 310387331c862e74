"""Which channel each row of a batch goes to, worked out by the tasks, which run side by side."""

from functools import lru_cache
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc


def placed(batch: pa.RecordBatch, queue: str, channel: str) -> pa.RecordBatch:
    """With ``queue`` and ``channel`` filled in, each row's channel id, and the rows of a channel
    side by side, in the order they came: what moves them then writes to few places of an index.
    With keys all rows stay where they are, because the first of two with one key is published."""
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
    places = (divmod(pair, len(channels)) for pair in pairs.to_pylist())
    return pa.array([channel_id(queues[q], channels[c]) for q, c in places], pa.binary())


@lru_cache(maxsize=100_000)
def channel_id(queue: str, channel: str) -> bytes:
    """As channel_id_v1 computes it in the database."""
    return sha256(f"{len(queue)}:{queue}{channel}".encode()).digest()[:16]


def _filled(batch: pa.RecordBatch, name: str, default: str) -> pa.DictionaryArray:
    if name in batch.schema.names:
        return pc.dictionary_encode(pc.fill_null(batch[name], default))
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * batch.num_rows, pa.int32()), pa.array([default])
    )
