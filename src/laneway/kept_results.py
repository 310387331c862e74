"""Results that are kept: how a message asks for it, and what whoever asks for one is told.

A message carries the wish in its headers, so that it survives retries, redrives and copies, and
costs those who have none nothing.
"""

from datetime import timedelta
from typing import Any

from .durations import Duration, check_duration
from .errors import (
    DecodeError,
    MessageCancelled,
    MessageDead,
    MessageLapsed,
    MessageUnknown,
    NoResult,
    ResultMissing,
)
from .event import MessageEnd, StoredResult
from .model import KeptResult
from .payload import decode, decode_json, encode

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
