"""Messages from lines: read, parsed and checked one by one; --rejects keeps the bad ones."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import typer

from laneway.errors import InvalidInput, InvalidOption, InvalidPayload, LanewayError

from .times import length, moment

if TYPE_CHECKING:
    from laneway import NewMessage


_CHUNK = 256 * 1024
_BATCH = 1000


class PayloadFormat(StrEnum):
    """How a payload is given."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"
    MESSAGE = "message"


class InputLine(NamedTuple):
    number: int
    raw: bytes
    """As it was read, without the newline at its end."""

    @property
    def content(self) -> bytes:
        return self.raw.removesuffix(b"\r")


def read_batches(stream: BinaryIO, skip: int) -> Iterator[list[InputLine]]:
    """The lines after the first ``skip``, in batches, without empty lines.

    A batch is what one read returned: lines are not held back while a pipe pauses.
    """
    number, rest = 0, b""
    while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
        *whole, rest = (rest + chunk).split(b"\n")
        lines = [InputLine(number + n, line) for n, line in enumerate(whole, start=1)]
        number += len(whole)
        yield from _cut([line for line in lines if line.number > skip and line.raw.strip()])
    if rest.strip() and number >= skip:
        yield [InputLine(number + 1, rest)]


def _cut(lines: list[InputLine]) -> Iterator[list[InputLine]]:
    for start in range(0, len(lines), _BATCH):
        yield lines[start : start + _BATCH]


def parsed(content: bytes, form: PayloadFormat, pattern: "NewMessage") -> "NewMessage":
    """The message in a line or a file; ``pattern`` has the options common to all."""
    if form is PayloadFormat.MESSAGE:
        return _whole(content, pattern)
    return replace(pattern, payload=payload_of(content, form))


def payload_of(content: bytes, form: PayloadFormat) -> Any:
    from laneway.payload import decode_json, decode_text

    if form is PayloadFormat.BYTES:
        return content
    try:
        return decode_text(content) if form is PayloadFormat.TEXT else decode_json(content)
    except InvalidInput as error:
        hint = (
            "; to publish it as it is, use --as text or --as bytes"
            if form is PayloadFormat.JSON
            else ""
        )
        raise InvalidPayload(f"{error}{hint}") from None


def check(message: "NewMessage") -> None:
    """Raises what publishing would raise."""
    from laneway.client.shared.draft import draft_new
    from laneway.payload import MAX_PAYLOAD

    draft_new(message, "default", "default", MAX_PAYLOAD)


_READERS: dict[str, Callable[[Any], Any]] = {
    "delay": length,
    "expires_in": length,
    "key_window": length,
    "debounce_for": length,
    "at": moment,
    "expires_at": moment,
}


def _whole(content: bytes, pattern: "NewMessage") -> "NewMessage":
    """A line with a whole message: its payload and any other fields."""
    line = payload_of(content, PayloadFormat.JSON)
    if not isinstance(line, dict) or "payload" not in line:
        raise InvalidPayload("the line is not a JSON object with a payload")
    known = {field.name for field in fields(pattern)}
    unknown = sorted(set(line) - known)
    if unknown:
        raise InvalidOption(
            f"a message has no field {unknown[0]!r}: use {', '.join(sorted(known))}"
        )
    values = {name: _value(name, value) for name, value in line.items()}
    if "key" not in line and pattern.key is None:
        # --key-window and --on-duplicate are for the lines that have a key.
        plain = {"key_window": None, "on_duplicate": "keep", "debounce_for": None}
        values = plain | values
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
    """A stream, and its size if known; ``-`` is stdin."""
    if path == "-":
        return typer.get_binary_stream("stdin"), None
    file = Path(path)
    try:
        return file.open("rb"), file.stat().st_size if file.is_file() else None
    except OSError as error:
        raise InvalidOption(f"cannot read {path}: {error.strerror}") from None


SaveRejects = Callable[[Sequence[InputLine]], None]


class RejectsLost(LanewayError):
    """The file could not be written to, for example on a full disk."""


@contextmanager
def open_rejects(path: Path | None, source: BinaryIO, append: bool) -> Iterator[SaveRejects]:
    """Yields a function that saves lines; without a ``path`` it does nothing."""
    if path is None:
        yield lambda lines: None
        return
    file = _opened(path, source, append)

    def save(lines: Sequence[InputLine]) -> None:
        try:
            file.writelines(line.raw + b"\n" for line in lines)
            file.flush()
        except OSError as error:
            raise RejectsLost(
                f"cannot write to {path}: {error.strerror}; it may lack bad lines from line "
                f"{lines[0].number} on"
            ) from None

    try:
        yield save
    finally:
        with suppress(OSError):  # everything was flushed, or is known to be lost
            file.close()


def _opened(path: Path, source: BinaryIO, append: bool) -> BinaryIO:
    """Appends when an input is continued with --skip."""
    try:
        if path.exists() and _is_same(path, source):
            raise InvalidOption(f"{path} is the input itself: use another file for --rejects")
        return path.open("ab" if append else "wb")
    except OSError as error:
        raise InvalidOption(f"cannot write to {path}: {error.strerror}") from None


def _is_same(path: Path, source: BinaryIO) -> bool:
    try:
        read = os.fstat(source.fileno())
    except OSError:  # an input that is not a file
        return False
    return stat.S_ISREG(read.st_mode) and os.path.samestat(read, path.stat())
