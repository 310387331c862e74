"""The columns of a frame as fields of messages, checked before anything is written: without
pyarrow, which the processes that plan and commit a job do not need."""

from pyspark.sql.types import DataType, DayTimeIntervalType, StructType

from laneway.errors import InvalidOption
from laneway.payload import BYTES, JSON

TIMES = ("at", "expires_at")
LENGTHS = ("delay", "expires_in", "key_window")
TEXTS = ("queue", "channel", "kind", "key", "content_type", "headers")
_FIELDS: dict[str, tuple[str, ...]] = {
    "payload": ("binary", "string"),
    **dict.fromkeys(TEXTS, ("string",)),
    **dict.fromkeys(LENGTHS, ("interval day to second",)),
    **dict.fromkeys(TIMES, ("timestamp",)),
    "priority": ("tinyint", "smallint", "int", "bigint"),
    "max_attempts": ("tinyint", "smallint", "int", "bigint"),
}


def check_columns(schema: StructType) -> None:
    """Raises InvalidOption for a frame whose columns are not those of messages."""
    names = schema.fieldNames()
    if "payload" not in names:
        raise InvalidOption(
            "the frame has no column 'payload': "
            "select(to_json(struct('*')).alias('payload')) makes one"
        )
    for field in schema:
        allowed = _FIELDS.get(field.name)
        if allowed is None:
            raise InvalidOption(
                f"a message has no field {field.name!r}: it has {', '.join(_FIELDS)}"
            )
        kind = _kind(field.dataType)
        if kind not in allowed:
            raise InvalidOption(
                f"column {field.name!r} is {kind}: it must be {' or '.join(allowed)}"
            )
    for pair in (("delay", "at"), ("expires_in", "expires_at")):
        if set(pair) <= set(names):
            raise InvalidOption(f"the frame has both {pair[0]!r} and {pair[1]!r}: keep one")


def _kind(type: DataType) -> str:
    """All intervals of days, hours, minutes and seconds are one kind."""
    day_time = isinstance(type, DayTimeIntervalType)
    return "interval day to second" if day_time else type.simpleString()


def content_type(schema: StructType) -> str:
    """The default content type: a text payload is JSON, as ``to_json`` writes it."""
    return JSON if schema["payload"].dataType.simpleString() == "string" else BYTES
