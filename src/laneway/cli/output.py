"""Data on stdout, messages and logs on stderr; tables for people, JSON for programs.

In a terminal a table is cut to its width; in a pipe it is tab-separated and complete. The streams
are open, can encode every character, and a failed write to stdout is reported.
"""

import codecs
import io
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as members
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.table import Table


_ESCAPING = "laneway-escape"


class OutputLost(Exception):
    """stdout could not be written to."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(
            f"cannot write to stdout: {cause.strerror}; what was done before is not undone"
        )
        self.reader_has_enough = isinstance(cause, BrokenPipeError)


def set_up_streams() -> None:
    """In the order of their numbers, so that no database file gets the number of a closed one."""
    sys.stdin = sys.stdin or _nothing("r")
    sys.stdout = _watched(sys.stdout or _closed_stdout())
    sys.stderr = sys.stderr or _nothing("w")


def _nothing(mode: str) -> Any:
    return open(os.devnull, mode)


def _closed_stdout() -> TextIO:
    """Opened for reading, so that only a command that writes to it fails."""
    return open(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)


def _watched(stream: Any) -> TextIO:
    codecs.register_error(_ESCAPING, _json_escaped)
    return io.TextIOWrapper(
        io.BufferedWriter(_Watched(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=_ESCAPING if stream.errors == "strict" else stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _Watched(io.FileIO):
    """The file below stdout: its errors must not be taken for those of other files.

    Only write() is overridden: input() uses the rest and would lose a Ctrl-C in Python code there.
    """

    _lost = False

    def write(self, data: Any) -> int:
        # What is left in buffers is written again at exit; the error was reported already.
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            raise OutputLost(error) from None


def _json_escaped(error: UnicodeError) -> tuple[str, int]:
    """As JSON escapes, so that JSON stays JSON in any encoding."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Column:
    """``wide``: shown only in terminals at least this many characters wide."""

    name: str
    right: bool = False
    wide: int = 0


def say(text: str) -> None:
    """A message for a person, on stderr."""
    typer.echo(_clean(text), err=True)


def emit(value: object) -> None:
    """One JSON object, on one line."""
    typer.echo(as_json_text(value))


def as_json_text(value: object) -> str:
    """JSON that is safe for any terminal and reader: unprintable characters are escaped, including
    lone surrogates, which a payload may hold but UTF-8 may not."""
    text = json.dumps(_plain(value), ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def emit_all(values: Iterable[object]) -> None:
    """JSON objects, one per line."""
    for value in values:
        emit(value)


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    if not sys.stdout.isatty():
        typer.echo("\t".join(column.name for column in columns))
        for row in rows:
            typer.echo("\t".join(printable(cell) for cell in row))
        return
    from rich.console import Console

    console = Console()
    console.print(rich_table(columns, rows, console.width))


def by_database(
    columns: Sequence[Column], rows: Sequence[tuple[Any, Sequence[object]]]
) -> tuple[Sequence[Column], list[Sequence[object]]]:
    """Rows of several databases, each with its source, say which; those of one stay as they are."""
    if all(source.name is None for source, _ in rows):
        return columns, [row for _, row in rows]
    named = [(source.name, *row) for source, row in rows]
    return (Column("database"), *columns), list(named)


def rich_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    width: int,
    title: str | None = None,
) -> "Table":
    """Only the columns that ``width`` has room for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    kept = [number for number, column in enumerate(columns) if column.wide <= width]
    for number in kept:
        made.add_column(columns[number].name, justify="right" if columns[number].right else "left")
    for row in rows:
        made.add_row(*(Text(printable(row[number])) for number in kept))
    return made


def fields(values: Mapping[str, object]) -> None:
    """Names and values, one per line, without those that are None or empty."""
    shown = {name: printable(value) for name, value in values.items() if value not in (None, "")}
    width = max(map(len, shown), default=0)
    for name, text in shown.items():
        typer.echo(f"{name:<{width}}  {text}")


def printable(value: object) -> str:
    """Text that can neither break a line nor control the terminal."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _ESCAPES.get(c, _escaped(c)) for c in text)


def _clean(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def _plain(value: object) -> Any:
    from laneway.to_json import plain

    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    return plain(_in_utc(value))


def _in_utc(value: Any) -> Any:
    """Drivers return times in the session's time zone, which is the server's setting."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _in_utc(getattr(value, field.name)) for field in members(value)}
    if isinstance(value, Mapping):
        return {name: _in_utc(item) for name, item in value.items()}
    return [_in_utc(item) for item in value] if isinstance(value, list | tuple) else value


class _Lines(logging.Formatter):
    """Escapes control characters, so that no name can break a line or control the terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, theirs
        return printable(super().formatMessage(record) + _about(record))


def _about(record: logging.LogRecord) -> str:
    """Which message the line is about, unless it says so itself."""
    fields = vars(record)
    if "message_id" not in fields or f"message {fields['message_id']} " in record.message:
        return ""
    kind, channel, attempt = (fields.get(name) for name in ("kind", "channel", "attempt"))
    named = f", {kind}" if kind else ""
    return f" [message {fields['message_id']}{named}, channel {channel}, attempt {attempt}]"


def log_to_stderr(*, verbose: bool = False, as_json: bool = False) -> None:
    from laneway.worker.telemetry.logs import JsonFormatter, MessageContext

    lines = _Lines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else lines)
    if as_json:
        logging.captureWarnings(True)
        # The user's module may have set up logging while it was imported.
        for there in logging.getLogger().handlers:
            if type(there) is logging.StreamHandler and there.stream in (sys.stderr, sys.stdout):
                there.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    for there in logging.getLogger().handlers:
        there.addFilter(MessageContext())


def log_in_processes(*, verbose: bool, as_json: bool) -> None:
    """Processes of handlers log as the worker does."""
    from laneway.worker.telemetry.process_wide import Carried, carried

    place = f"{__name__}:{logging_of_worker.__name__}"
    values = {name: "yes" for name, on in (("verbose", verbose), ("json", as_json)) if on}
    carried[:] = [one for one in carried if one.place != place]
    carried.append(Carried(lambda: values, place))


@cache
def _set_up_once(verbose: bool, as_json: bool) -> None:
    log_to_stderr(verbose=verbose, as_json=as_json)


@contextmanager
def logging_of_worker(values: Mapping[str, str]) -> Iterator[None]:
    """Entered in the process of a handler."""
    _set_up_once("verbose" in values, "json" in values)
    yield
