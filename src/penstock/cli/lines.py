"""Messages from lines: read, checked one by one, and those that are bad set aside."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import typer

from penstock.errors import InvalidInput, InvalidOption, InvalidPayload

from .times import length, moment

if TYPE_CHECKING:
    from penstock import NewMessage


_CHUNK = 256 * 1024
_BATCH = 1000


class Form(StrEnum):
    """What a payload is given as."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"
    MESSAGE = "message"


class Line(NamedTuple):
    number: int
    raw: bytes
    """As it was read, without the line feed at its end."""

    @property
    def content(self) -> bytes:
        return self.raw.removesuffix(b"\r")


def read_batches(stream: BinaryIO, skip: int) -> Iterator[list[Line]]:
    """The lines after the first ``skip`` as they come, in batches; empty ones are no messages.

    A pipe that pauses does not hold back what it has said: a batch is what one read brought.
    """
    number, rest = 0, b""
    while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
        *whole, rest = (rest + chunk).split(b"\n")
        lines = [Line(number + n, line) for n, line in enumerate(whole, start=1)]
        number += len(whole)
        yield from _cut([line for line in lines if line.number > skip and line.raw.strip()])
    if rest.strip() and number >= skip:
        yield [Line(number + 1, rest)]


def _cut(lines: list[Line]) -> Iterator[list[Line]]:
    for start in range(0, len(lines), _BATCH):
        yield lines[start : start + _BATCH]


def parsed(content: bytes, form: Form, pattern: "NewMessage") -> "NewMessage":
    """The message that a line or a file stands for; ``pattern`` has what holds for all."""
    if form is Form.MESSAGE:
        return _whole(content, pattern)
    return replace(pattern, payload=payload_of(content, form))


def payload_of(content: bytes, form: Form) -> Any:
    from penstock.payload import decode_json, decode_text

    if form is Form.BYTES:
        return content
    try:
        return decode_text(content) if form is Form.TEXT else decode_json(content)
    except InvalidInput as error:
        hint = "; use --as text or --as bytes to publish it as it is" if form is Form.JSON else ""
        raise InvalidPayload(f"{error}{hint}") from None


def check(message: "NewMessage") -> None:
    """Raises what publishing would."""
    from penstock.client.drafting import draft_new
    from penstock.payload import MAX_PAYLOAD

    draft_new(message, "default", "default", MAX_PAYLOAD)


_READERS: dict[str, Callable[[Any], Any]] = {
    "delay": length,
    "expires_in": length,
    "key_window": length,
    "at": moment,
    "expires_at": moment,
}


def _whole(content: bytes, pattern: "NewMessage") -> "NewMessage":
    """A line that is a message itself: its payload and any of a message's other fields."""
    line = payload_of(content, Form.JSON)
    if not isinstance(line, dict) or "payload" not in line:
        raise InvalidPayload("the line is no object with a payload")
    known = {field.name for field in fields(pattern)}
    unknown = sorted(set(line) - known)
    if unknown:
        raise InvalidOption(f"{unknown[0]!r} is no field of a message: {', '.join(sorted(known))}")
    values = {name: _value(name, value) for name, value in line.items()}
    if "key" not in line and pattern.key is None:
        values.setdefault("key_window", None)  # --key-window is for the lines that have a key
    return replace(pattern, **values)


def _value(name: str, value: Any) -> Any:
    read = _READERS.get(name)
    if read is None or value is None or isinstance(value, datetime):
        return value
    try:
        return read(str(value))
    except typer.BadParameter as error:
        raise InvalidOption(f"{name}: {error.message}") from None


def open_input(path: str) -> tuple[BinaryIO, int | None]:
    """A stream, and its size if that is known; ``-`` is stdin."""
    if path == "-":
        return typer.get_binary_stream("stdin"), None
    file = Path(path)
    try:
        return file.open("rb"), file.stat().st_size if file.is_file() else None
    except OSError as error:
        raise InvalidOption(f"{path} cannot be read: {error.strerror}") from None
