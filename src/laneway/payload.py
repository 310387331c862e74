"""Payloads: values to bytes with a content type, and back by annotation. No pickle. And results
that are kept."""

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar, overload

from .convert import read_as, reader_of
from .durations import Duration, check_duration
from .errors import (
    DecodeError,
    InvalidPayload,
    MessageCancelled,
    MessageDead,
    MessageLapsed,
    MessageUnknown,
    NoResult,
    PayloadTooLarge,
    ResultMissing,
)
from .event import MessageEnd, StoredResult
from .model import KeptResult
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


def decode_json(data: bytes | str) -> Any:
    """The value of a JSON payload."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise DecodeError("the payload is nested too deeply to be read") from None
    except ValueError as error:
        raise DecodeError(f"the payload is not JSON: {error}") from None


def check_json(text: str) -> None:
    """Raises DecodeError for a text that ``decode_json`` could not read."""
    if msgspec is not None:
        # It reads less, and faster.
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            msgspec.json.decode(text)
            return
    decode_json(text)


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


def is_json(content_type: str) -> bool:
    """Whether those who take anything read the payload as JSON."""
    return content_type.startswith(JSON) or "+json" in content_type


def as_published(data: bytes, content_type: str) -> Any:
    """The payload as its content type says, for those who take anything."""
    if is_json(content_type):
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
    raise ValueError(f"{name} is not JSON")


# Results that are kept: how a message asks for it, and what whoever asks for one is told.
#
# A message carries the wish in its headers, so that it survives retries, redrives and copies, and
# costs those who have none nothing.

KEEP_RESULT = "laneway-keep-result"
"""The header: for how many seconds."""

LONGEST = timedelta(days=3650)
_QUOTED = f'"{KEEP_RESULT}"'


def check_keep_result(value: Duration) -> timedelta:
    return min(check_duration("keep_result", value), LONGEST)


def keep_result_of(headers: str | None) -> timedelta | None:
    """What a message's headers ask for. Anybody can write any headers, in SQL even such as are no
    object or cannot be read: what is no number is nothing."""
    if headers is None or _QUOTED not in headers:
        return None
    try:
        found = decode_json(headers.encode())
    except DecodeError:
        return None
    seconds = found.get(KEEP_RESULT) if isinstance(found, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return timedelta(seconds=min(max(seconds, 0), LONGEST.total_seconds()))


def kept_result(keep: timedelta, value: object, most: int) -> KeptResult:
    """Ready to be stored; raises InvalidPayload or PayloadTooLarge."""
    data, content_type = encode(value, most, "result")
    return KeptResult(keep, content_type, data)


def read_result(ending: MessageEnd, stored: StoredResult | None, wanted: Any) -> Any:
    """What the handler returned, as ``wanted``; raises NoResult if there is nothing to give."""
    if stored is None:
        raise _no_result(ending)
    return decode(stored.payload, stored.content_type, wanted)


def _no_result(ending: MessageEnd) -> NoResult:
    name = f"message {ending.message_id}"
    if ending.outcome == "completed":
        if ending.kept_until is None:
            return ResultMissing(
                f"{name} completed and its result is not kept: publish it with keep_result=, and "
                "ask before that time has passed",
                ending,
            )
        return ResultMissing(
            f"{name} completed and its result was kept until {ending.kept_until:%Y-%m-%d %H:%M:%S} "
            "UTC: ask sooner, or publish with a longer keep_result",
            ending,
        )
    if ending.outcome in ("dead", "discarded"):
        why = ": ".join(part for part in (ending.error_type, ending.error) if part)
        was = "is a dead letter" if ending.outcome == "dead" else "was a dead letter, now discarded"
        return MessageDead(f"{name} {was} ({ending.reason}){why and ' after '}{why}", ending)
    if ending.outcome == "cancelled":
        return MessageCancelled(f"{name} was cancelled", ending)
    if ending.outcome == "skipped":
        why = "what it came after in its flow did not end as it was meant to"
        return MessageCancelled(f"{name} was not begun: {why}", ending)
    if ending.outcome == "lapsed":
        return MessageLapsed(f"{name} lapsed: it was not started before its expires_at", ending)
    return MessageUnknown(
        f"{name} is not known: its id is wrong, its publish is not committed yet, or it ended and "
        "the history does not keep it",
        ending,
    )
