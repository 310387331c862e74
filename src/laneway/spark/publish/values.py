"""Checks the values of a frame: only what the library accepts, and so can read, is published.

Whole columns are checked at once. Only headers and content types are checked one by one by the
library, each distinct text once.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from laneway.client.shared.draft import check_content_type, header_text
from laneway.contract import HIGHEST_PRIORITY
from laneway.errors import (
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
)
from laneway.names import NAME_BYTES

from .fields import LENGTHS, TEXTS, TIMES

RANGES = {"priority": (0, HIGHEST_PRIORITY), "max_attempts": (1, 2**31 - 1)}
_CENTURY = 100 * 366 * 86_400 * 10**6
# Some drivers use the first and the last moment for infinity.
_FIRST, _LAST = -62_135_596_800_000_000 + 1, 253_402_300_799_999_999 - 1
_NAMES = ("queue", "channel", "key", "kind")
_TYPES = {
    "payload": pa.binary(),
    "priority": pa.int16(),
    "max_attempts": pa.int32(),
    **{name: pa.string() for name in TEXTS},
    **{name: pa.timestamp("us", tz="UTC") for name in TIMES},
}


def shaped(batch: pa.RecordBatch, max_payload: int) -> pa.RecordBatch:
    """The batch with the types of a staging table; raises InvalidInput for an invalid value."""
    names = batch.schema.names
    for name, array in zip(names, batch.columns, strict=True):
        check_text(name, array)
    arrays = [_column(name, array) for name, array in zip(names, batch.columns, strict=True)]
    for name, array in zip(names, arrays, strict=True):
        check_values(name, array, max_payload)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _column(name: str, array: pa.Array) -> pa.Array:
    if name in LENGTHS:
        return array.cast(pa.duration("us")).cast(pa.int64())
    if name in RANGES:
        check_range(name, array, *RANGES[name])
    return array.cast(_TYPES[name])


def check_text(name: str, array: pa.Array) -> None:
    """A string of Spark may hold any bytes."""
    if not pa.types.is_string(array.type):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise InvalidInput(
            f"column {name!r} has text that is not UTF-8: decode it, or publish binary"
        ) from None
    if name != "payload" and pc.any(pc.match_substring(array, "\0")).as_py():
        raise InvalidName(f"a {name} has a NUL character, which cannot be stored")


def check_values(name: str, array: pa.Array, max_payload: int) -> None:
    """Raises InvalidInput for a value that a message cannot have."""
    if name == "payload":
        _check_payload(array, max_payload)
    elif name in _NAMES:
        _check_name(name, array)
    elif name in LENGTHS:
        check_range(name, array, 0, _CENTURY)
    elif name in TIMES:
        _check_times(name, array)
    elif name in ("headers", "content_type"):
        for text in pc.unique(array.drop_null()).to_pylist():
            check_content_type(text) if name == "content_type" else header_text(headers(text))


def check_range(name: str, array: pa.Array, least: int, most: int) -> None:
    found = pc.min_max(array).as_py()
    if found["min"] is not None and (found["min"] < least or found["max"] > most):
        raise InvalidOption(
            f"column {name!r} has values from {found['min']} to {found['max']}: "
            f"they must be between {least} and {most}"
        )


def headers(text: str) -> dict[str, object]:
    """The headers of a row, which must be a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidPayload("column 'headers' has a value that is no JSON object")
    return found


def _check_payload(array: pa.Array, most: int) -> None:
    if array.null_count:
        raise InvalidPayload("a payload is null: every message must have one")
    size = _most(pc.binary_length(array))
    if size > most:
        raise PayloadTooLarge(
            f"a payload has {size:,} bytes, {most:,} are allowed: publish a reference, or raise "
            "max_payload"
        )


def _check_name(name: str, array: pa.Array) -> None:
    sizes = pc.binary_length(array)
    if _most(sizes) > NAME_BYTES:
        raise InvalidName(f"a {name} has {_most(sizes)} bytes, {NAME_BYTES} are allowed")
    if name != "kind" and array.null_count < len(array) and pc.min(sizes).as_py() == 0:
        raise InvalidName(f"a {name} is empty: give it a name, or null for the default")


def _check_times(name: str, array: pa.Array) -> None:
    found = pc.min_max(array.cast(pa.int64())).as_py()
    if found["min"] is not None and (found["min"] < _FIRST or found["max"] > _LAST):
        raise InvalidTime(
            f"column {name!r} has a time outside of the years 1 to 9999 in UTC: use null if "
            "there is none"
        )


def _most(sizes: pa.Array) -> int:
    return pc.max(sizes).as_py() or 0
