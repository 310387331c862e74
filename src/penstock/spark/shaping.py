"""A frame's columns as message fields, checked column by column before anything is written."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DayTimeIntervalType, StructType

from penstock.errors import InvalidName, InvalidOption, InvalidPayload, PayloadTooLarge
from penstock.names import NAME_BYTES
from penstock.payload import BYTES, JSON

_CENTURY = 100 * 366 * 86_400 * 10**6
_LARGEST = 2**31 - 1
_TEXT = ("queue", "channel", "kind", "key", "content_type", "headers")
_LENGTHS = ("delay", "expires_in", "key_window")
_FIELDS: dict[str, tuple[str, ...]] = {
    "payload": ("binary", "string"),
    **dict.fromkeys(_TEXT, ("string",)),
    **dict.fromkeys(_LENGTHS, ("interval day to second",)),
    "at": ("timestamp",),
    "expires_at": ("timestamp",),
    "priority": ("tinyint", "smallint", "int", "bigint"),
    "max_attempts": ("tinyint", "smallint", "int", "bigint"),
}
_TYPES = {
    "payload": pa.binary(),
    "priority": pa.int16(),
    "max_attempts": pa.int32(),
    **{name: pa.string() for name in _TEXT},
    **{name: pa.timestamp("us", tz="UTC") for name in ("at", "expires_at")},
}
_RANGES = {"priority": (0, 9), "max_attempts": (1, _LARGEST)}


def check_columns(schema: StructType) -> None:
    """Refuses a frame that is none of messages, by the column's name."""
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
    """Intervals of days, hours, minutes and seconds are one kind, whatever their fields."""
    day_time = isinstance(type, DayTimeIntervalType)
    return "interval day to second" if day_time else type.simpleString()


def content_type(schema: StructType) -> str:
    """What a payload is taken for if nothing says it: text is JSON, as ``to_json`` writes it."""
    return JSON if schema["payload"].dataType.simpleString() == "string" else BYTES


def shaped(batch: pa.RecordBatch, max_payload: int) -> pa.RecordBatch:
    """The batch with the types of a staging table; raises InvalidInput if a value cannot be."""
    names = batch.schema.names
    arrays = [_column(name, batch.column(place)) for place, name in enumerate(names)]
    for name, array in zip(names, arrays, strict=True):
        _check(name, array, max_payload)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _column(name: str, array: pa.Array) -> pa.Array:
    if name in _LENGTHS:
        return array.cast(pa.duration("us")).cast(pa.int64())
    if name in _RANGES:
        _check_range(name, array, *_RANGES[name])
    return array.cast(_TYPES[name])


def _check(name: str, array: pa.Array, max_payload: int) -> None:
    if name == "payload":
        if array.null_count:
            raise InvalidPayload("a payload is null: every message needs one")
        if _most(pc.binary_length(array)) > max_payload:
            raise PayloadTooLarge(
                f"a payload has {_most(pc.binary_length(array)):,} bytes, {max_payload:,} are "
                "allowed: publish a reference, or raise max_payload"
            )
    elif name in _LENGTHS:
        _check_range(name, array, 0, _CENTURY)
    elif name in ("queue", "channel", "key", "kind"):
        sizes = pc.binary_length(array)
        if _most(sizes) > NAME_BYTES:
            raise InvalidName(f"a {name} has {_most(sizes)} bytes, {NAME_BYTES} are allowed")
        if name != "kind" and array.null_count < len(array) and pc.min(sizes).as_py() == 0:
            raise InvalidName(f"a {name} is empty: give it a name, or null for the default")


def _check_range(name: str, array: pa.Array, least: int, most: int) -> None:
    found = pc.min_max(array).as_py()
    if found["min"] is not None and (found["min"] < least or found["max"] > most):
        raise InvalidOption(
            f"column {name!r} goes from {found['min']} to {found['max']}: "
            f"it must stay between {least} and {most}"
        )


def _most(sizes: pa.Array) -> int:
    return pc.max(sizes).as_py() or 0
