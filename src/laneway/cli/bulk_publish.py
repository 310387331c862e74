"""Publishes messages from lines, in batches; it can be interrupted and continued."""

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import typer

from laneway.errors import (
    ConnectionUnavailable,
    InvalidInput,
    InvalidOption,
    InvalidPayload,
    LanewayError,
    PayloadTooLarge,
    PublishRefused,
)

from .options import length, moment
from .output import emit_all, say

if TYPE_CHECKING:
    from laneway import NewMessage, Published, Queue


_CHUNK = 4 * 1024 * 1024
_BESIDE = 1024 * 1024
# As many as publish_many takes to write them by COPY.
_BATCH = 10_000


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


def most_input(client: "Queue", form: PayloadFormat) -> int:
    """Bytes that a message may have in a line or a file: beside the payload, which JSON may write
    with six bytes for one, there is what ``--as message`` says of it."""
    most = client.database.options.max_payload
    return 6 * most + _BESIDE if form is PayloadFormat.MESSAGE else most


def read_message(stream: BinaryIO, most: int) -> bytes:
    """All there is; not more than a message may have, as some files have no end."""
    content = b""
    while len(content) <= most and (part := stream.read(most + 1 - len(content))):
        content += part
    if len(content) > most:
        raise PayloadTooLarge(
            f"there are more than {most:,} bytes: store them elsewhere and publish a reference, or "
            "publish many messages with --lines"
        )
    return content


def read_batches(stream: BinaryIO, skip: int, most: int) -> Iterator[list[InputLine]]:
    """The lines after the first ``skip``, in batches, without empty lines.

    A batch is what one read returned: lines are not held back while a pipe pauses. One that is
    longer than ``most`` may have no end.
    """
    number, rest = 0, b""
    while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > most:
            raise PayloadTooLarge(
                f"line {number + len(whole) + 1:,} has more than {most:,} bytes: is this a file of "
                "lines?"
            )
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
        # --key-scope, --key-window and --on-duplicate are for the lines that have a key.
        plain = {
            "key_scope": "kind",
            "key_window": None,
            "on_duplicate": "keep",
            "debounce_for": None,
        }
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


_MAX_SHOWN = 20


class LineResult(NamedTuple):
    """The result of one line; ``why`` it was refused, if it was."""

    line: InputLine
    id: int | None
    status: str
    why: str | None = None

    def document(self) -> dict[str, object]:
        document: dict[str, object] = {
            "line": self.line.number,
            "id": self.id,
            "status": self.status,
        }
        return document if self.why is None else document | {"error": self.why}


@dataclass(slots=True)
class PublishCounts:
    """The results so far."""

    published: int = 0
    existing: int = 0
    replaced: int = 0
    bad: int = 0
    last: int = 0
    stopped: bool = False

    def add(self, results: list[LineResult]) -> None:
        for result in results:
            self.published += result.status == "published"
            self.existing += result.status == "existing"
            self.replaced += result.status == "replaced"
            if result.why is not None:
                self._refuse(result.line, result.why)

    def _refuse(self, line: InputLine, why: str) -> None:
        self.bad += 1
        if self.bad <= _MAX_SHOWN:
            say(f"line {line.number}: {why}")
        elif self.bad == _MAX_SHOWN + 1:
            say("… further bad lines are only counted (--rejects saves them)")


@dataclass(slots=True)
class BulkPublisher:
    """Publishes batches of lines; each batch is committed before the next is read."""

    client: "Queue"
    format: PayloadFormat
    pattern: "NewMessage"
    counts: PublishCounts
    save: SaveRejects
    as_json: bool

    def run(
        self, batches: Iterable[list[InputLine]], moved: Callable[[list[InputLine]], None]
    ) -> None:
        """Ctrl-C stops it between two batches, or at once while it waits for input."""
        try:
            for batch in batches:
                with delayed_interrupt() as interrupted:
                    self._settle(batch, self._publish(batch))
                    moved(batch)
                if interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.counts.stopped = True

    def _settle(self, batch: list[InputLine], results: list[LineResult]) -> None:
        """Counts first: they must be right even if writing the output fails."""
        self.counts.add(results)
        self.counts.last = batch[-1].number
        if bad := [result.line for result in results if result.why is not None]:
            self.save(bad)
        if self.as_json:
            emit_all(result.document() for result in results)

    def _publish(self, batch: list[InputLine]) -> list[LineResult]:
        read = [(line, self._read(line)) for line in batch]
        good = [message for _, message in read if not isinstance(message, InvalidInput)]
        results = iter(self._published(good, batch))
        return [
            LineResult(line, None, "bad", str(message))
            if isinstance(message, InvalidInput)
            else _line_result(line, next(results))
            for line, message in read
        ]

    def _read(self, line: InputLine) -> "NewMessage | InvalidInput":
        """Checked one by one, so that a bad line does not make its whole batch fail."""
        try:
            message = parsed(line.content, self.format, self.pattern)
            check(message)
        except InvalidInput as error:
            return error
        return message

    def _published(
        self, messages: list["NewMessage"], batch: list[InputLine]
    ) -> Sequence["Published"]:
        try:
            return self.client.publish_many(messages)
        except PublishRefused as refused:
            return refused.results
        except ConnectionUnavailable:
            say(
                f"It is unknown whether lines {batch[0].number} to {batch[-1].number} were "
                "published; all lines before them were. "
                f"Continue with --skip {self.counts.last}: lines with "
                "a key are not published twice while the key is held, i.e. until the message has "
                "ended and its --key-window is over."
            )
            raise


def _line_result(line: InputLine, result: "Published") -> LineResult:
    if result.id is None:
        return LineResult(line, None, "bad", f"the channel is {result.status}")
    return LineResult(line, result.id, result.status)


@contextmanager
def delayed_interrupt() -> Iterator[list[int]]:
    """Delays the first Ctrl-C to the end of the block; the second one takes effect at once."""
    interrupted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(size: int | None) -> Iterator[Callable[[list[InputLine]], None]]:
    """A progress bar on stderr in a terminal, and nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda batch: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, count = bar.add_task("publishing", total=size), 0

        def moved(batch: list[InputLine]) -> None:
            nonlocal count
            count += len(batch)
            bytes_read = sum(len(line.raw) + 1 for line in batch)
            bar.update(task, advance=bytes_read, description=f"published {count:,}")

        yield moved
