"""A bell for SQLite: a look at the file's change counter, more and more rarely while nothing
happens.

A look reads a few bytes of shared memory and takes no lock. At the slowest it is some forty a
second, which is about one part in ten thousand of a processor.
"""

import asyncio
import sqlite3

from .bell import QuietBell
from .sqlite_place import SqlitePlace, connect, file_at, read_url
from .sqlite_runner import MemoryWrites

_FIRST, _MOST = 0.002, 0.025  # seconds between two looks


def sqlite_bell(url: str, channel: str | None, wanted: frozenset[str]) -> "SqliteBell":
    """Rings whatever was committed: which queue it was for, the claim will find out."""
    return SqliteBell(read_url(url))


class SqliteBell(QuietBell):
    """Sees the commits of all connections to the file, in this process and others. What happens in
    memory is seen in this process only, where it is."""

    def __init__(self, place: SqlitePlace) -> None:
        super().__init__()
        self._place = place
        self._eye: sqlite3.Connection | None = None
        self._file: object = None
        self._seen: int | None = None

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        step = _FIRST
        while not self._changed():
            left = end - loop.time()
            if left <= 0:
                return False
            if await super().wait(min(step, left)):
                return True
            step = min(1.3 * step, _MOST)
        return True

    async def close(self) -> None:
        if self._eye is not None:
            self._eye.close()
            self._eye = None

    def _changed(self) -> bool:
        version = self._version()
        before, self._seen = self._seen, version
        # The first look cannot know: better a ring for nothing than one missed.
        return before != version

    def _version(self) -> int:
        if self._place.in_memory:
            return MemoryWrites.number
        if self._eye is not None and self._file != file_at(self._place):
            # Deleted or replaced. The next look cannot know, as the first one could not.
            self._eye.close()
            self._eye = self._seen = None
        if self._eye is None:
            self._eye = connect(self._place)
            self._file = file_at(self._place)
        (version,) = self._eye.execute("pragma data_version").fetchone()
        return int(version)
