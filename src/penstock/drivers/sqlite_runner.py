"""The standard library's sqlite3: short write transactions, reads that wait for nobody."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Semaphore
from typing import TypeVar

from penstock.plan import Plan, Row, Statement

from .placeholders import numbered
from .sqlite_faults import translated
from .sqlite_patience import PATIENCE, patiently
from .sqlite_place import connect, file_at, read_url
from .sqlite_turns import Turns

T = TypeVar("T")


class MemoryWrites:
    """Rises with every write to a database in memory, for the bells of this process."""

    number = 0


Opened = tuple[sqlite3.Connection, object]
"""A connection, and which file it has open."""


class SqliteRunner:
    """Connects at the first call.

    A plan's transaction begins with its first statement that is no look, and takes the write lock
    at once: a transaction that reads first and writes later could be refused in the middle. Threads
    of one client queue up for the lock inside the process. In memory there is one connection.
    """

    def __init__(
        self, url: str, *, pool_size: int, pooler: bool = False, wait: float = PATIENCE
    ) -> None:
        self._place = read_url(url)
        self._wait = wait
        self._size = 1 if self._place.in_memory else pool_size
        self._closed = False
        self._idle: list[Opened] = []
        self._slots = Semaphore(self._size)
        self._turns = Turns(None if self._place.in_memory else self._place.path, wait)

    def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        try:
            with self._connection() as connection:
                return self._drive(connection, plan)
        except (sqlite3.Error, OSError) as error:
            raise translated(error, self._place.path, self._wait) from error

    def close(self) -> None:
        """What is still at work closes its connection when it is done."""
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
                # One that could not even be rolled back is of no use to the next.
                if self._closed or connection.in_transaction:
                    connection.close()
                else:
                    self._idle.append((connection, file))

    def _take(self) -> Opened:
        """Whose file was deleted or replaced is left: nobody would find what is written to it."""
        while opened := self._pop():
            if opened[1] == file_at(self._place):
                return opened
            opened[0].close()
        return connect(self._place), file_at(self._place)

    def _pop(self) -> Opened | None:
        """Another thread may take the last one between a look and a pop: so there is no look."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drive(self, connection: sqlite3.Connection, plan: Plan[T]) -> T:
        transaction = Transaction(connection, self._turns, self._wait)
        try:
            statement = next(plan)
            while True:
                statement = plan.send(transaction.execute(statement))
        except StopIteration as end:
            transaction.commit()
            if transaction.wrote and self._place.in_memory:
                MemoryWrites.number += 1
            return end.value  # type: ignore[no-any-return]
        finally:
            transaction.roll_back()


class Transaction:
    """Begun when it must be, and committed before a look."""

    def __init__(self, connection: sqlite3.Connection, turns: Turns, wait: float) -> None:
        self._connection = connection
        self._turns = turns
        self._wait = wait
        self._begun = False
        self.wrote = False

    def execute(self, statement: Statement) -> Sequence[Row]:
        if statement.look:
            self.commit()
            return patiently(lambda: execute(self._connection, statement), self._wait)
        self._begin()
        return execute(self._connection, statement)

    def commit(self) -> None:
        if self._begun:
            self._connection.execute("commit")
            self._end()

    def roll_back(self) -> None:
        """Nothing to do after a commit."""
        if self._begun:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
            finally:
                self._end()

    def _begin(self) -> None:
        if not self._begun:
            self._turns.begin(self._connection)
            self._begun = self.wrote = True

    def _end(self) -> None:
        self._begun = False
        self._turns.end()


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
    """The statements of a script: executescript would commit what is open."""
    part = ""
    for piece in script.split(";")[:-1]:
        part += piece + ";"
        if sqlite3.complete_statement(part):
            yield part
            part = ""
