"""Payloads: values to bytes with a content type, and back by annotation. No pickle.

JSON is strict and the same whether msgspec is installed or not: it is only faster.
"""

import json
from contextlib import suppress
from typing import Any, TypeVar, overload

from .convert import read_as, reader_of
from .errors import DecodeError, InvalidPayload, PayloadTooLarge
from .to_json import plain

try:
    import msgspec
except ImportError:  # the stdlib writes and reads the same
    msgspec = None  # type: ignore[assignment]

T = TypeVar("T")

BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
ARGUMENTS = "application/json; laneway=arguments"
"""A JSON object that holds the arguments of a function by name."""

MAX_PAYLOAD = 1024 * 1024
_ARGUMENTS = ARGUMENTS.replace(" ", "")
_INSTEAD = {"payload": "publish", "result": "return"}


def encode(value: object, most: int = MAX_PAYLOAD, what: str = "payload") -> tuple[bytes, str]:
    """The bytes to store and their content type: bytes and text as they are, all else as JSON."""
    if value.__class__ is bytes:
        data, content_type = value, BYTES
    elif isinstance(value, bytes | bytearray | memoryview):
        data, content_type = bytes(value), BYTES
    elif isinstance(value, str):
        data, content_type = _utf8(value), TEXT
    else:
        data, content_type = encode_json(value), JSON
    if len(data) > most:
        raise PayloadTooLarge(
            f"the {what} has {len(data):,} bytes, {most:,} are allowed: "
            f"store it elsewhere and {_INSTEAD[what]} a reference, or raise max_payload"
        )
    return data, content_type


def encode_json(value: object) -> bytes:
    """Compact strict JSON in UTF-8."""
    simple = plain(value)
    try:
        if msgspec is not None:
            with suppress(OverflowError):  # an integer of more than 64 bits
                return msgspec.json.encode(simple)
        return _ENCODER.encode(simple).encode()
    except UnicodeEncodeError:
        raise InvalidPayload("a text has half a surrogate pair and cannot be written") from None
    except ValueError as error:
        raise InvalidPayload(f"the value cannot be written as JSON: {error}") from None


def decode_json(data: bytes) -> Any:
    """The value of a JSON payload."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise DecodeError("the payload is nested too deeply to be read") from None
    except ValueError as error:
        raise DecodeError(f"the payload is not JSON: {error}") from None


def decode_text(data: bytes) -> str:
    """The text of a payload in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"the payload is not text in UTF-8: {error}") from None


@overload
def decode(data: bytes, content_type: str, wanted: type[T]) -> T: ...
@overload
def decode(data: bytes, content_type: str, wanted: Any) -> Any: ...
def decode(data: bytes, content_type: str, wanted: Any) -> Any:
    """The payload as ``wanted``: bytes, str, or whatever JSON can be converted to.

    What was published as bytes or text is that for every ``wanted`` that can be (``str | None``,
    a StrEnum), and is taken for JSON by all others.
    """
    if wanted is bytes:
        return data
    if wanted is str and not content_type.startswith(JSON):
        return decode_text(data)
    if wanted is Any or wanted is object:
        return as_published(data, content_type)
    reader = reader_of(wanted)
    if not content_type.startswith(JSON):
        if reader.raw and not (reader.text and content_type.startswith("text/")):
            return data
        if reader.text:
            return read_as(decode_text(data), wanted, reader.text)
    return read_as(decode_json(data), wanted, reader.read)


def holds_arguments(content_type: str) -> bool:
    """Whether the payload holds the arguments of a function by name."""
    return content_type != JSON and content_type.replace(" ", "") == _ARGUMENTS


def as_published(data: bytes, content_type: str) -> Any:
    """The payload as its content type says, for those who take anything."""
    if content_type.startswith(JSON) or "+json" in content_type:
        return decode_json(data)
    return decode_text(data) if content_type.startswith("text/") else data


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(
            "the text has half a surrogate pair and cannot be written: publish bytes instead"
        ) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
