"""Python values to what JSON has: objects, arrays, text, numbers, true, false and null."""

import dataclasses
import math
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from .errors import InvalidPayload, shown
from .model import NewMessage
from .pydantic_models import is_model, written_model

DEPTH = 100
_SIMPLE = frozenset({str, int, bool, type(None)})


def plain(value: object, depth: int = DEPTH) -> Any:
    """The same value in JSON's terms; raises InvalidPayload for what JSON has no word for.

    Times become ISO 8601, timedeltas seconds, decimals text, bytes inside a structure base64.
    """
    kind = type(value)
    if kind in _SIMPLE:
        return value
    if depth <= 0:
        raise InvalidPayload(f"the value is nested deeper than {DEPTH} levels, or holds itself")
    if kind is dict or isinstance(value, Mapping):
        return _plain_object(value, depth - 1)  # type: ignore[arg-type]
    if kind is list or isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth - 1) for item in value]  # type: ignore[attr-defined]
    if kind is float:
        return _finite(value)  # type: ignore[arg-type]
    for known, write in _WRITERS:
        if isinstance(value, known):
            return write(value)
    return _plain_structure(value, depth - 1)


def _plain_object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        if type(key) is not str:
            raise InvalidPayload(
                f"JSON keys are text, not {type(key).__name__} ({shown(key)}): convert them first"
            )
        result[key] = item if type(item) in _SIMPLE else plain(item, depth)
    return result


def _plain_structure(value: object, depth: int) -> Any:
    if isinstance(value, NewMessage):
        raise InvalidPayload(
            "a NewMessage is no payload: give a list of them to publish_many, or its payload and "
            "options to publish"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: plain(getattr(value, f.name), depth) for f in fields}
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return plain(_built_in(value, msgspec), depth)
    if is_model(value):
        return plain(written_model(value), depth)
    raise InvalidPayload(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be written as JSON: "
        "publish bytes, text, or plain data"
    )


def _built_in(value: object, msgspec: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError) as error:
        name = type(value).__qualname__
        raise InvalidPayload(f"{name} cannot be written as JSON: {error}") from error


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidPayload(f"{value} cannot be written as JSON: use null or text")
    return value


def _seconds(value: timedelta) -> float:
    seconds = value.total_seconds()
    if timedelta(seconds=seconds) != value:
        raise InvalidPayload(
            f"{value} is too long to be written in seconds to the microsecond: round it first"
        )
    return seconds


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Enum, lambda value: plain(value.value)),
    (str, str.__str__),
    (int, int),
    (float, lambda value: _finite(float(value))),
    (datetime | date | time, lambda value: value.isoformat()),
    (timedelta, _seconds),
    (Decimal | UUID, str),
    (bytes | bytearray | memoryview, lambda value: b64encode(value).decode()),
)
