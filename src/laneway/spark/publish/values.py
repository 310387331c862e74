"""Checks the values of a frame: only what the library accepts, and so can read, is published.

Whole columns are checked at once. Only JSON is checked one by one by the library: payloads that are
text, and each distinct text of headers; and so are content types. Structs and maps become JSON by
the library's own rules.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from laneway.client.shared.checks import check_choice
from laneway.client.shared.draft import check_content_type, header_text
from laneway.contract import HIGHEST_PRIORITY
from laneway.errors import (
    DecodeError,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
)
from laneway.model import KeyScope
from laneway.names import NAME_BYTES
from laneway.payload import JSON, check_json, encode_json, is_json
from laneway.spark.acknowledge import acknowledge
from laneway.spark.options import SparkOptions

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


def all_shaped(
    batches: Iterable[pa.RecordBatch], options: SparkOptions
) -> Iterator[pa.RecordBatch]:
    """The batches of a task, without empty ones."""
    acknowledge()
    rows = 0
    for batch in batches:
        if batch.num_rows:
            yield shaped(batch, options["max_payload"], options["content_type"] or JSON, rows)
            rows += batch.num_rows


def shaped(
    batch: pa.RecordBatch, max_payload: int, content_type: str = JSON, before: int = 0
) -> pa.RecordBatch:
    """The batch with the types of a staging table; raises InvalidInput for an invalid value.
    ``content_type`` is that of texts whose row names none, ``before`` the number of rows that the
    task had before these."""
    names = batch.schema.names
    for name, array in zip(names, batch.columns, strict=True):
        check_text(name, array)
    arrays = [
        _column(name, array, before) for name, array in zip(names, batch.columns, strict=True)
    ]
    for name, array in zip(names, arrays, strict=True):
        check_values(name, array, max_payload)
    if is_text(batch["payload"].type):
        _check_is_json(batch, content_type, before)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _column(name: str, array: pa.Array, before: int) -> pa.Array:
    if name in LENGTHS:
        return array.cast(pa.duration("us")).cast(pa.int64())
    if name in RANGES:
        check_range(name, array, *RANGES[name])
    if pa.types.is_nested(array.type):
        array = _as_json(name, array, before)
    return array.cast(_TYPES[name])


def _as_json(name: str, array: pa.Array, before: int) -> pa.Array:
    """Structs, maps and arrays as the library writes dicts and lists."""
    as_written = _converter(array.type) or _as_it_is
    found: list[bytes | None] = []
    try:
        for value in _python_values(array):
            found += [None if value is None else encode_json(as_written(value))]
    except (InvalidPayload, ValueError, OverflowError) as error:
        raise InvalidPayload(f"{name} of {_place(before + len(found))}: {error}") from None
    return pa.array(found, pa.binary())


def _python_values(array: pa.Array) -> Iterator[Any]:
    """One by one if a value among them has no place in Python, to know which."""
    try:
        yield from array.to_pylist()
    except (ValueError, OverflowError):
        for scalar in array:
            yield scalar.as_py()


def _as_it_is(value: Any) -> Any:
    return value


def _converter(type: pa.DataType) -> Callable[[Any], Any] | None:
    """From what Arrow makes of a value to what the library writes: moments in UTC, not in the time
    zone of the session, and maps as dicts. None: it is the same."""
    if pa.types.is_timestamp(type) and type.tz is not None:
        return lambda value: value.astimezone(UTC)
    if pa.types.is_struct(type):
        found = {field.name: _converter(field.type) for field in type}
        parts = {name: part for name, part in found.items() if part is not None}
        return _struct_converter(parts) if parts else None
    if pa.types.is_map(type):
        item = _nullable(_converter(type.item_type))
        return lambda value: {key: item(part) for key, part in value}
    if pa.types.is_list(type):
        inner = _converter(type.value_type)
        part = _nullable(inner)
        return None if inner is None else lambda value: [part(one) for one in value]
    return None


def _struct_converter(parts: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    safe = {name: _nullable(part) for name, part in parts.items()}
    return lambda value: {**value, **{name: part(value[name]) for name, part in safe.items()}}


def _nullable(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if convert is None:
        return _as_it_is
    return lambda value: None if value is None else convert(value)


def _check_is_json(batch: pa.RecordBatch, content_type: str, before: int) -> None:
    """Whoever claims a message that says that it is JSON must be able to read it."""
    claims_json = _json_rows(batch, content_type)
    for row, text in enumerate(batch["payload"].to_pylist(), before):
        if not claims_json(row - before):
            continue
        try:
            check_json(text)
        except DecodeError as error:
            raise InvalidPayload(
                f"payload of {_place(row)}: {error}; publish JSON, or set option content_type to "
                "'text/plain'"
            ) from None


def _json_rows(batch: pa.RecordBatch, default: str) -> Callable[[int], bool]:
    if "content_type" not in batch.schema.names:
        all_are = is_json(default)
        return lambda row: all_are
    types: list[Any] = batch["content_type"].fill_null(default).to_pylist()
    return lambda row: is_json(types[row])


def _place(row: int) -> str:
    """A row's number, from 1, in its partition, which has one too, from 0."""
    context = TaskContext.get()
    return f"row {row + 1}" + (f" of partition {context.partitionId()}" if context else "")


def is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def check_text(name: str, array: pa.Array) -> None:
    """A string of Spark may hold any bytes."""
    if not is_text(array.type):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise InvalidInput(
            f"column {name!r} has text that is not UTF-8: decode it, or publish binary"
        ) from None
    if name != "payload" and _has_nul(array):
        raise InvalidName(f"a {name} has a NUL character, which cannot be stored")


def _has_nul(array: pa.Array) -> bool:
    """Looks into single values only if there is one somewhere in the column's memory."""
    data = array.buffers()[2]
    if data is None or b"\0" not in data.to_pybytes():
        return False
    return bool(pc.any(pc.match_substring(array, "\0")).as_py())


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
    elif name == "key_scope":
        for scope in pc.unique(array.drop_null()).to_pylist():
            check_choice("key_scope", scope, get_args(KeyScope))
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
        raise InvalidPayload("column 'headers' has a value that is not a JSON object")
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
