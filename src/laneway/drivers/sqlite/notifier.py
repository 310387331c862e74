"""A notifier for SQLite: polls the file's change counter, less and less often while nothing
happens.

A poll reads a few bytes of shared memory and takes no lock. There are at least forty a second,
which takes about 0.01 % of a processor.
"""

import asyncio
import sqlite3

from laneway.drivers.listener import LocalNotifier

from .runner import MemoryWrites
from .url import SqliteLocation, connect, file_id, read_url

_MIN_DELAY, _MAX_DELAY = 0.002, 0.025  # seconds between two polls


def sqlite_notifier(url: str, channel: str | None, wanted: frozenset[str]) -> "SqliteNotifier":
    """Wakes at every commit: the claim finds out which queue it was for."""
    return SqliteNotifier(read_url(url))


class SqliteNotifier(LocalNotifier):
    """Sees the commits of all connections to the file, in this process and others. A database in
    memory exists in this process only."""

    def __init__(self, location: SqliteLocation) -> None:
        super().__init__()
        self._location = location
        self._connection: sqlite3.Connection | None = None
        self._file: object = None
        self._seen: int | None = None

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        delay = _MIN_DELAY
        while not self._changed():
            left = end - loop.time()
            if left <= 0:
                return False
            if await super().wait(min(delay, left)):
                return True
            delay = min(1.3 * delay, _MAX_DELAY)
        return True

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _changed(self) -> bool:
        version = self._version()
        before, self._seen = self._seen, version
        # The first poll has nothing to compare: rather wake up for nothing than miss a commit.
        return before != version

    def _version(self) -> int:
        if self._location.in_memory:
            return MemoryWrites.number
        if self._connection is not None and self._file != file_id(self._location):
            # Deleted or replaced: start again, as with the first poll.
            self._connection.close()
            self._connection = self._seen = None
        if self._connection is None:
            self._connection = connect(self._location)
            self._file = file_id(self._location)
        (version,) = self._connection.execute("pragma data_version").fetchone()
        return int(version)
