"""Where an SQLite database is, and a connection to it with the settings that Penstock needs."""

import os
import re
import sqlite3
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from penstock.errors import DatabaseFailed, InvalidOption, shown

from .faults import masked
from .sqlite_patience import patiently

OLDEST = (3, 35, 0)
_MEMORY = ":memory:"
_SYNCHRONOUS = ("full", "normal", "extra")
# A URL ends at the first, and loses the others without a word: another file would be opened.
_LOST = re.compile(r"[#\t\r\n]")


class SqlitePlace(NamedTuple):
    """``path`` is ``:memory:`` for a database that lives and dies with its one connection."""

    path: str
    synchronous: str

    @property
    def in_memory(self) -> bool:
        return self.path == _MEMORY


def read_url(url: str) -> SqlitePlace:
    """``sqlite:///file.db``, ``sqlite:////absolute/file.db``, ``sqlite://`` for memory.

    ``?synchronous=normal`` trades the last transactions before a power cut for speed. A relative
    path is one from here: a process that goes to another folder later stays with its file.
    """
    if lost := _LOST.search(url):
        raise InvalidOption(
            f"{masked(url)!r} has {lost[0]!r} in it: write {quote(lost[0])} for it, and %25 for %"
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
            f"unknown in {masked(url)}: {', '.join(options)}; synchronous is all there is"
        )
    if synchronous not in _SYNCHRONOUS:
        raise InvalidOption(f"synchronous is {shown(synchronous)}: use {', '.join(_SYNCHRONOUS)}")
    return SqlitePlace(_path(unquote(parts.path[1:])), synchronous)


def _path(text: str) -> str:
    if "\0" in text:
        raise InvalidOption("no file's name has a NUL character in it: leave %00 out of the URL")
    return _MEMORY if text in ("", _MEMORY) else os.path.abspath(text)


def file_at(place: SqlitePlace) -> tuple[int, int] | None:
    """Which file is at the path now; None if there is none, or if it is in memory."""
    try:
        found = None if place.in_memory else os.stat(place.path)
    except FileNotFoundError:
        found = None
    return None if found is None else (found.st_dev, found.st_ino)


def connect(place: SqlitePlace) -> sqlite3.Connection:
    """In autocommit mode; the runner says when a transaction begins."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise DatabaseFailed(f"SQLite 3.35 is needed, this Python has {sqlite3.sqlite_version}")
    connection = sqlite3.connect(
        place.path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        if not place.in_memory:
            _set_up(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, place: SqlitePlace) -> None:
    (mode,) = patiently(lambda: connection.execute("pragma journal_mode = wal").fetchone())
    if mode != "wal":
        raise DatabaseFailed(
            f"{place.path} cannot use a write-ahead log (it stays in mode {mode!r}): keep it on a "
            "local disk, in a folder that can be written to"
        )
    connection.execute(f"pragma synchronous = {place.synchronous}")
    connection.execute("pragma cache_size = -16000")
