"""A message as the caller writes it to a draft that an engine can store."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Generic, ParamSpec, cast, get_args

from laneway.contract import BATCH, DEFAULT_MAX_ATTEMPTS, HIGHEST_PRIORITY
from laneway.durations import Duration, check_duration
from laneway.errors import (
    BacklogFull,
    ChannelClosed,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
    PublishRefused,
    shown,
)
from laneway.model import Draft, KeyMode, KeyScope, NewMessage, OnDuplicate, Published
from laneway.names import check_kind, check_name
from laneway.payload import JSON, KEEP_RESULT, check_keep_result, encode, encode_json
from laneway.shared_limits import LIMITS, check_limits
from laneway.to_json import is_model
from laneway.topic import TopicCopy

from .checks import check_choice, check_delay_or_at, check_number

# What the client's verbs know of a task: where its messages go.


P = ParamSpec("P")


class TaskTarget(Generic[P]):
    """The base of tasks. Verbs that take a queue and a kind, or a payload, take a task too. ``P``
    are the arguments of its calls."""

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @property
    def queue(self) -> str | None:
        """None is the queue of the client that publishes."""
        raise NotImplementedError

    def message(self, *args: P.args, **kwargs: P.kwargs) -> NewMessage:
        """A call of the task as a message that is not published yet."""
        raise NotImplementedError


# on_duplicate and debounce_for, as the caller writes them.

_DELAYS = 10
"""How many delays a message may be debounced, if the caller says nothing else."""


def key_mode(
    key: str | None, on_duplicate: object, delay: timedelta | None, debounce_for: object
) -> KeyMode | None:
    mode = check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
    if debounce_for is not None:
        debounce_for = check_duration("debounce_for", debounce_for)
    if mode != "debounce":
        if debounce_for is not None:
            raise InvalidOption('debounce_for belongs to on_duplicate="debounce": give that too')
        if mode == "keep":
            return None
    if key is None:
        raise InvalidOption(f"on_duplicate={mode!r} says what a key does: give a key too")
    if mode == "replace":
        return KeyMode(None)
    if not delay:
        raise InvalidOption(
            'on_duplicate="debounce" moves the due time to the delay from now: give a delay'
        )
    if debounce_for is None:
        return KeyMode(delay * _DELAYS)
    return KeyMode(check_duration("debounce_for", debounce_for, delay))


MOST_HEADERS = 64 * 1024  # bytes of JSON
MOST_CONTENT_TYPE = 255
_MOST_ATTEMPTS = 2**31 - 1
_DUE = ("delay", "at")
_EXPIRY = ("expires_in", "expires_at")
_ID = itemgetter(Published._fields.index("id"))
_ONE = (str, bytes, bytearray, memoryview, Mapping, NewMessage)
_MOST_KNOWN = 100_000
_known_queues: set[str] = set()
_known_channels: set[str] = set()
# jsonb has no word for it. (An even number of backslashes before it is just backslashes.)
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def draft_all(items: Any, queue: str, channel: str, most: int) -> list[Draft]:
    """Drafts of NewMessages, or of bare payloads."""
    if items.__class__ is not list:
        _check_many(items)
    return list(draft_each(items, queue, channel, most))


def draft_each(items: Iterable[Any], queue: str, channel: str, most: int) -> Iterator[Draft]:
    """The same one by one, for an engine that stores the first before the last is drafted."""
    return (
        draft_new(item if isinstance(item, NewMessage) else NewMessage(item), queue, channel, most)
        for item in items
    )


def is_bulk(items: object) -> bool:
    """Whether these are many messages, none of which has a key."""
    return (
        isinstance(items, list)
        and len(items) >= BATCH
        and not any(item.key is not None for item in items if isinstance(item, NewMessage))
    )


def _check_many(items: object) -> None:
    """One message that is iterable would be published in pieces."""
    if isinstance(items, TaskTarget):
        raise InvalidOption(f"publish_many takes calls of {items.kind}: [{items.kind}.message(…)]")
    is_named_tuple = isinstance(items, tuple) and hasattr(items, "_fields")
    is_one = is_named_tuple or isinstance(items, _ONE) or is_model(items)
    if is_one or not isinstance(items, Iterable):
        raise InvalidOption(
            f"publish_many takes a list of messages, not one {type(items).__name__}: "
            "use publish for one, or put it into a list"
        )


def draft_new(message: NewMessage, queue: str, channel: str, most: int) -> Draft:
    """A draft of one message; ``queue`` and ``channel`` where it names none itself."""
    payload, content_type = encode(message.payload, most)
    if message.content_type is not None:
        content_type = check_content_type(message.content_type)
    queue = queue if message.queue is None else message.queue
    channel = channel if message.channel is None else message.channel
    priority, attempts = message.priority, message.max_attempts
    delay, at, expires_in, expires_at = (
        message.delay,
        message.at,
        message.expires_in,
        message.expires_at,
    )
    if delay is not None or at is not None:
        delay, at = check_delay_or_at(delay, at, _DUE)
    if expires_in is not None or expires_at is not None:
        expires_in, expires_at = check_delay_or_at(expires_in, expires_at, _EXPIRY)
        _check_expiry(delay, at, expires_in, expires_at)
    # Batches come by the thousand: a plain tuple first, and no call for what is left out or known.
    return tuple.__new__(
        Draft,
        (
            payload,
            queue
            if queue.__class__ is str and queue in _known_queues
            else _learn("queue", queue, _known_queues),
            channel
            if channel.__class__ is str and channel in _known_channels
            else _learn("channel", channel, _known_channels),
            "" if message.kind.__class__ is str and not message.kind else check_kind(message.kind),
            content_type,
            None
            if message.headers is None and message.keep_result is None and not message.limits
            else _headers(message),
            None if message.key is None else check_name("key", message.key),
            None if message.key_window is None else _key_window(message.key, message.key_window),
            0
            if priority.__class__ is int and not priority
            else check_number("priority", priority, 0, HIGHEST_PRIORITY),
            delay,
            at,
            expires_in,
            expires_at,
            DEFAULT_MAX_ATTEMPTS
            if attempts is None
            else check_number("max_attempts", attempts, 1, _MOST_ATTEMPTS),
            None if message.key_scope == "kind" else _key_scope(message.key, message.key_scope),
            None
            if message.on_duplicate == "keep" and message.debounce_for is None
            else key_mode(message.key, message.on_duplicate, delay, message.debounce_for),
        ),
    )


def _check_expiry(
    delay: timedelta | None,
    at: datetime | None,
    expires_in: timedelta | None,
    expires_at: datetime | None,
) -> None:
    """A length and a moment cannot be compared without a clock."""
    late = None not in (delay, expires_in) and delay >= expires_in  # type: ignore[operator]
    if late or (None not in (at, expires_at) and at >= expires_at):  # type: ignore[operator]
        raise InvalidTime(
            "the message expires before it is due, so that it never starts: "
            + (
                f"expires_in is {expires_in}, delay is {delay}"
                if late
                else f"expires_at is {expires_at}, at is {at}"
            )
        )


def _headers(message: NewMessage) -> str | None:
    if message.keep_result is None and not message.limits:
        return header_text(message.headers)
    headers = {} if message.headers is None else dict(_checked_headers(message.headers))
    if message.keep_result is not None:
        keep = check_keep_result(message.keep_result).total_seconds()
        headers[KEEP_RESULT] = int(keep) if keep == int(keep) else keep
    if message.limits:
        headers[LIMITS] = check_limits(message.limits)
    return header_text(headers)


def _learn(what: str, name: str, known: set[str]) -> str:
    """As check_name; a name that was good is not looked at again."""
    checked = check_name(what, name)
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known.add(checked)
    return checked


def draft_state(state: object, most: int) -> tuple[bytes | None, str | None]:
    """A state to save, and its content type; None clears it."""
    return (None, None) if state is None else encode(state, most)


def header_text(headers: object) -> str | None:
    """As it is stored; none for no header."""
    if not _checked_headers(headers):
        return None
    text = encode_json(headers).decode()
    if len(text) > MOST_HEADERS // 4 and len(text.encode()) > MOST_HEADERS:
        raise PayloadTooLarge(
            f"the headers have {len(text.encode()):,} bytes, {MOST_HEADERS:,} are allowed: "
            "put what is long into the payload"
        )
    if _NUL.search(text):
        raise InvalidPayload("a header holds a NUL character, which cannot be stored")
    return text


def _checked_headers(headers: object) -> Mapping[str, Any]:
    if not isinstance(headers, Mapping):
        raise InvalidPayload(f"headers must be a mapping, not {type(headers).__name__}")
    return headers


def _key_scope(key: str | None, scope: object) -> KeyScope | None:
    checked = cast(KeyScope, check_choice("key_scope", scope, get_args(KeyScope)))
    if key is None:
        raise InvalidOption(f"key_scope={scope!r} says where a key holds: give a key too")
    return checked


def _key_window(key: str | None, window: Duration) -> timedelta:
    if key is None:
        raise InvalidOption("key_window says how long a key lives: give a key too")
    return check_duration("key_window", window)


def check_content_type(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or not value:
        raise InvalidOption(f"{shown(value)} is not a content type: use one like {JSON!r}")
    if len(value) > MOST_CONTENT_TYPE:
        raise InvalidOption(
            f"the content type {shown(value, 40)} has {len(value)} characters, "
            f"{MOST_CONTENT_TYPE} are allowed"
        )
    return str.__str__(value)


def accepted(results: list[Published], draft: Callable[[int], Draft]) -> list[Published]:
    """The results, if no message was refused; ``draft`` gives the one of a number."""
    if None not in map(_ID, results):
        return results
    number, first = next((n, one) for n, one in enumerate(results) if one.refused)
    refused = draft(number)
    where = f"channel {refused.channel!r} of queue {refused.queue!r}"
    raise refusal(where, results, first.status == "closed")


def refusal(
    where: str, results: Sequence[Published] | Sequence[TopicCopy], closed: bool
) -> PublishRefused:
    """The error to raise; ``where`` names the first channel that refused."""
    refused = sum(result.refused for result in results)
    count = f"{refused} of {len(results)} messages refused"
    if closed:
        return ChannelClosed(
            f"{where} is being removed, {count}: publish elsewhere or wait until it has drained",
            results,
        )
    return BacklogFull(
        f"{where} is full, {count}: publish later, or raise its backlog limit", results
    )
