"""SQLite URLs, and connections with the settings that Laneway needs."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from laneway.drivers.errors import masked
from laneway.errors import DatabaseFailed, InvalidOption, shown

from .write_queue import retry_while_busy

OLDEST = (3, 35, 0)
MEMORY = ":memory:"
_SYNCHRONOUS = ("full", "normal", "extra")
# A URL ends at #, and urlsplit() drops the others silently: another file would be opened.
_DROPPED = re.compile(r"[#\t\r\n]")


class SqliteLocation(NamedTuple):
    """``path`` is ``:memory:`` for a database that exists as long as its one connection."""

    path: str
    synchronous: str

    @property
    def in_memory(self) -> bool:
        return self.path == MEMORY


def read_url(url: str) -> SqliteLocation:
    """``sqlite:///file.db``, ``sqlite:////absolute/file.db``, ``sqlite://`` for memory.

    ``?synchronous=normal`` is faster, but a power cut may lose the last transactions. A relative
    path is resolved now: changing the working directory later does not change the file.
    """
    if dropped := _DROPPED.search(url):
        raise InvalidOption(
            f"{masked(url)!r} contains {dropped[0]!r}: "
            f"write it as {quote(dropped[0])}, and % as %25"
        )
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidOption(f"{masked(url)} cannot be read: {error}") from None
    if not url.partition(":")[2].startswith("//"):
        raise InvalidOption(
            f"{masked(url)} lacks slashes: write sqlite:///relative.db or sqlite:////absolute.db"
        )
    if parts.netloc:
        raise InvalidOption(
            f"{masked(url)} names a host: write sqlite:///file.db, or sqlite:////absolute/file.db"
        )
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    synchronous = options.pop("synchronous", "full").lower()
    if options:
        raise InvalidOption(
            f"unknown option in {masked(url)}: {', '.join(options)}; the only one is synchronous"
        )
    if synchronous not in _SYNCHRONOUS:
        raise InvalidOption(f"synchronous is {shown(synchronous)}: use {', '.join(_SYNCHRONOUS)}")
    return SqliteLocation(_path(unquote(parts.path[1:])), synchronous)


def _path(text: str) -> str:
    if "\0" in text:
        raise InvalidOption("a file name cannot contain a NUL character: remove %00 from the URL")
    return MEMORY if text in ("", MEMORY) else os.path.abspath(text)


def file_id(location: SqliteLocation) -> tuple[int, int] | None:
    """Device and inode of the file; None if there is no file, or if it is in memory."""
    try:
        found = None if location.in_memory else os.stat(location.path)
    except FileNotFoundError:
        found = None
    return None if found is None else (found.st_dev, found.st_ino)


def connect(location: SqliteLocation) -> sqlite3.Connection:
    """In autocommit mode: the runner begins transactions itself."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise DatabaseFailed(f"SQLite 3.35 is needed, this Python has {sqlite3.sqlite_version}")
    connection = sqlite3.connect(
        location.path,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        if not location.in_memory:
            _set_up(connection, location)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, location: SqliteLocation) -> None:
    (mode,) = retry_while_busy(lambda: connection.execute("pragma journal_mode = wal").fetchone())
    if mode != "wal":
        raise DatabaseFailed(
            f"{location.path} cannot use a write-ahead log (it stays in mode {mode!r}): "
            "put it on a local disk, in a writable folder"
        )
    connection.execute(f"pragma synchronous = {location.synchronous}")
    connection.execute("pragma cache_size = -16000")


# Text columns as str, on a caller's connection with another ``text_factory``.


@contextmanager
def text_as_str(connection: Any) -> Iterator[None]:
    """For an sqlite3 or aiosqlite connection, whose setting applies to all its cursors."""
    theirs = connection.text_factory
    if theirs is str:
        yield
        return
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = theirs
