"""Python values, and models of pydantic, to what JSON has: objects, arrays, text, numbers, null."""

import dataclasses
import json
import math
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

from .errors import InvalidPayload, shown, with_article
from .model import NewMessage

# Models of pydantic, as JSON and back. It is never imported here: who has a model has it.

_MASK = "*" * 10
"""What pydantic writes instead of a secret."""


def is_model(value: object) -> bool:
    return is_model_class(type(value))


def is_model_class(kind: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def read_model(value: Any, kind: Any) -> Any:
    """As pydantic reads JSON, which is not how it reads Python's values: a strict model takes a
    time from a text, and bytes are what its configuration says. Raises ValueError."""
    names = _names_it_reads(kind)
    if names and isinstance(value, dict):
        value = {_read_name(key, names, value): part for key, part in value.items()}
    return kind.model_validate_json(json.dumps(value))


def written_model(value: Any) -> Any:
    """A model as plain JSON that reads back as it; raises InvalidPayload if there is none."""
    kind = type(value)
    try:
        written = value.model_dump(mode="json", by_alias=True)
    except UnicodeDecodeError:
        raise InvalidPayload(
            f"{kind.__qualname__} holds bytes that are not text: give it model_config = "
            'ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")'
        ) from None
    except ValueError as error:
        raise InvalidPayload(f"{kind.__qualname__} cannot be written as JSON: {error}") from error
    _check_that_it_reads_back(value, written)
    return written


def _check_that_it_reads_back(value: Any, written: Any) -> None:
    name = type(value).__qualname__
    try:
        read = read_model(written, type(value))
    except (ValueError, TypeError) as error:
        raise InvalidPayload(
            f"what {name} writes could not be read as {name} again ({error}): mend the model, or "
            'publish value.model_dump(mode="json") for readers who take something else'
        ) from error
    if _holds_mask(written) and read != value:
        raise InvalidPayload(
            f"{name} holds a secret, which pydantic writes as {_MASK}: publish a reference to it, "
            "or give the model a serializer that reveals it"
        )


def _holds_mask(written: Any) -> bool:
    if isinstance(written, dict):
        return any(map(_holds_mask, written.values()))
    if isinstance(written, list):
        return any(map(_holds_mask, written))
    return bool(written == _MASK)


def _read_name(key: str, names: dict[str, str], value: dict[str, Any]) -> str:
    meant = names.get(key, key)
    return key if meant in value else meant


@lru_cache(maxsize=1000)
def _names_it_reads(kind: Any) -> dict[str, str]:
    """Fields that are written by one name and read by another: from the first to the second."""
    fields = kind.model_fields.items()
    read = {name: field.validation_alias or name for name, field in fields}
    written = {name: field.serialization_alias or name for name, field in fields}
    return {
        written[name]: read_as
        for name, read_as in read.items()
        if isinstance(read_as, str) and written[name] not in read.values()
    }


# Python values to what JSON has: objects, arrays, text, numbers, true, false and null.

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
            "a NewMessage is not a payload: give a list of them to publish_many, or its payload "
            "and options to publish"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: plain(getattr(value, f.name), depth) for f in fields}
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return plain(_built_in(value, msgspec), depth)
    if is_model(value):
        return plain(written_model(value), depth)
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    raise InvalidPayload(
        f"{with_article(module + kind.__qualname__)} cannot be written as JSON: publish bytes, "
        "text, or plain data"
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
