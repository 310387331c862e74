"""The columns of the history, as Arrow and Parquet know them: those of the view ``history_v1``."""

import pyarrow as pa

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
        pa.field("ended_at", INSTANT, nullable=False),
        pa.field("payload_size", pa.int64()),
        pa.field("terminal", pa.bool_(), nullable=False),
        pa.field("dead", pa.bool_(), nullable=False),
    ]
)

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
"""What had not ended when it was looked at: waiting, scheduled, leased or dead. ``due`` is when it
was ready: not before it was published."""
