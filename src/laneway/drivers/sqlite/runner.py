"""Runs plans on sqlite3: short write transactions, and reads that wait for no lock; and its
notifier."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Semaphore
from typing import TypeVar

from laneway.drivers.errors import missing_schema
from laneway.drivers.listener import LocalNotifier
from laneway.drivers.placeholders import numbered
from laneway.errors import ConnectionUnavailable, DatabaseFailed, LanewayError
from laneway.plan import Plan, Row, Statement

from .url import SqliteLocation, connect, file_id, read_url
from .write_queue import BUSY_TIMEOUT, WriteQueue, is_busy, retry_while_busy

# Laneway's errors for what sqlite3 raises.

_AWAY = {"SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PERM", "SQLITE_AUTH"}
_ADVICE = {
    "SQLITE_CANTOPEN": "the folder must exist, and this user must be able to write there",
    "SQLITE_NOTADB": "point the URL at another file",
    "SQLITE_READONLY": "this user must be able to write the file and its folder",
    "SQLITE_FULL": "nothing of this call was written: free some disk space",
    "SQLITE_CORRUPT": "restore a backup, or recover what is readable with sqlite3's .recover",
}


def translated(error: sqlite3.Error | OSError, path: str, wait: float) -> LanewayError:
    """For errors on our own connections."""
    if isinstance(error, OSError):  # from the lock file of the write queue
        return ConnectionUnavailable(f"{path} cannot be opened: {error}")
    if missing := missing_schema(error):
        return missing
    name = getattr(error, "sqlite_errorname", None)
    if is_busy(error) or str(error) == "database is locked":
        return DatabaseFailed(
            f"another transaction held the write lock of {path} for {wait:.0f} s; nothing was "
            "written: find the process that keeps a transaction open",
            "SQLITE_BUSY",
        )
    if name is not None and any(name.startswith(away) for away in _AWAY):
        return ConnectionUnavailable(f"{path} cannot be opened: {error}{_advice(name)}")
    return DatabaseFailed(f"SQLite refused: {error} ({path}){_advice(name)}", name)


def _advice(name: str | None) -> str:
    """By the first two words of the error's name; a third one only adds detail."""
    advice = _ADVICE.get("_".join((name or "").split("_")[:2]))
    return f"; {advice}" if advice else ""


T = TypeVar("T")


class MemoryWrites:
    """Counts the writes to databases in memory, for the notifiers of this process."""

    number = 0


Opened = tuple[sqlite3.Connection, object]
"""A connection, and the file that it has open."""


class SqliteRunner:
    """Connects on the first call.

    A plan's transaction begins with its first statement that is not ``outside``, and takes the
    write lock at once: a transaction that reads first and writes later could be refused in the
    middle. Threads of one client wait for each other inside the process. A database in memory has
    one connection.
    """

    def __init__(
        self, url: str, *, pool_size: int, pooler: bool = False, wait: float = BUSY_TIMEOUT
    ) -> None:
        self._location = read_url(url)
        self._wait = wait
        self._size = 1 if self._location.in_memory else pool_size
        self._closed = False
        self._idle: list[Opened] = []
        self._slots = Semaphore(self._size)
        self._write_queue = WriteQueue(
            None if self._location.in_memory else self._location.path, wait
        )

    def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        try:
            with self._connection() as connection:
                return self._drive(connection, plan)
        except (sqlite3.Error, OSError) as error:
            raise translated(error, self._location.path, self._wait) from error

    def close(self) -> None:
        """Running calls close their connections when they are done."""
        self._closed = True
        while opened := self._pop():
            opened[0].close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._slots:
            connection, file = self._take()
            self._closed = False
            try:
                yield connection
            finally:
                # A connection that could not be rolled back must not be reused.
                if self._closed or connection.in_transaction:
                    connection.close()
                else:
                    self._idle.append((connection, file))

    def _take(self) -> Opened:
        """Drops connections whose file was deleted or replaced: what they write would be lost."""
        while opened := self._pop():
            if opened[1] == file_id(self._location):
                return opened
            opened[0].close()
        return connect(self._location), file_id(self._location)

    def _pop(self) -> Opened | None:
        """Does not test first: another thread could take the last one in between."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drive(self, connection: sqlite3.Connection, plan: Plan[T]) -> T:
        transaction = SqliteTransaction(connection, self._write_queue, self._wait)
        try:
            statement = next(plan)
            while True:
                statement = plan.send(transaction.execute(statement))
        except StopIteration as end:
            transaction.commit()
            if transaction.wrote and self._location.in_memory:
                MemoryWrites.number += 1
            return end.value  # type: ignore[no-any-return]
        finally:
            transaction.roll_back()


class SqliteTransaction:
    """Begun at the first statement that is not ``outside``, committed before the next that is."""

    def __init__(
        self, connection: sqlite3.Connection, write_queue: WriteQueue, wait: float
    ) -> None:
        self._connection = connection
        self._write_queue = write_queue
        self._wait = wait
        self._begun = False
        self.wrote = False

    def execute(self, statement: Statement) -> Sequence[Row]:
        if statement.outside:
            self.commit()
            return retry_while_busy(lambda: execute(self._connection, statement), self._wait)
        self._begin()
        return execute(self._connection, statement)

    def commit(self) -> None:
        if self._begun:
            self._connection.execute("commit")
            self._end()

    def roll_back(self) -> None:
        """Does nothing after a commit."""
        if self._begun:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
            finally:
                self._end()

    def _begin(self) -> None:
        if not self._begun:
            self._write_queue.begin(self._connection)
            self._begun = self.wrote = True

    def _end(self) -> None:
        self._begun = False
        self._write_queue.end()


def execute(on: sqlite3.Connection | sqlite3.Cursor, statement: Statement) -> Sequence[Row]:
    if statement.script:
        for part in split(statement.sql):
            on.execute(part)
        return ()
    if statement.many:
        on.executemany(numbered(statement.sql), statement.params)
        return ()
    return on.execute(numbered(statement.sql), statement.params).fetchall()


def split(script: str) -> Iterator[str]:
    """The statements of a script: executescript() would commit the open transaction."""
    part = ""
    for piece in script.split(";")[:-1]:
        part += piece + ";"
        if sqlite3.complete_statement(part):
            yield part
            part = ""


# SQLite for asyncio: a whole plan runs in a thread, so that a verb of ten statements switches
# threads once, and waiting for a lock does not block the event loop.


class AsyncSqliteRunner:
    """Connects on the first call."""

    def __init__(
        self, url: str, *, pool_size: int, pooler: bool = False, wait: float = BUSY_TIMEOUT
    ) -> None:
        self._inner = SqliteRunner(url, pool_size=pool_size, wait=wait)
        self._pool_size = pool_size
        self._threads: ThreadPoolExecutor | None = None

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._pool_size, "laneway sqlite")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self._inner.run, plan))

    async def close(self) -> None:
        """Waits for running calls; the next call connects again."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        self._inner.close()


# A notifier for SQLite: polls the file's change counter, less and less often while nothing
# happens.
#
# A poll reads a few bytes of shared memory and takes no lock. There are at least forty a second,
# which takes about 0.01 % of a processor.

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
