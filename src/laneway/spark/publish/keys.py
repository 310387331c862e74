"""The keys of a frame, under the names that the database has for them."""

import pyarrow as pa

from laneway.engines.keys import key_name


def with_key_names(batch: pa.RecordBatch, channel: str, kind: str) -> pa.RecordBatch:
    """The batch with names of keys instead of keys, and without their scopes; ``channel`` and
    ``kind`` are those of rows that have none."""
    if "key" not in batch.schema.names:
        return batch
    channels, kinds, scopes = (
        batch[name].to_pylist() if name in batch.schema.names else [None] * batch.num_rows
        for name in ("channel", "kind", "key_scope")
    )
    rows = zip(batch["key"].to_pylist(), scopes, channels, kinds, strict=True)
    names = [
        None
        if key is None
        else key_name(key, scope, own_channel or channel, kind if own_kind is None else own_kind)
        for key, scope, own_channel, own_kind in rows
    ]
    kept = [name for name in batch.schema.names if name != "key_scope"]
    columns = {name: batch[name] for name in kept} | {"key": pa.array(names, pa.string())}
    return pa.RecordBatch.from_pydict(columns)
