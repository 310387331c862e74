"""Who writes next: threads of one client queue for a lock, processes by courtesy.

SQLite itself keeps no line: a process that writes in a loop takes the lock again before anybody who
sleeps between two tries wakes up. So those who wait hold a shared lock on a small file beside the
database, and those who come look whether anybody does. The kernel ends these locks with their
process, whatever happens to it; nobody ever waits for one.
"""

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from .sqlite_patience import is_busy, patiently

try:
    import fcntl
except ImportError:  # Windows: then chance decides which process is next
    fcntl = None  # type: ignore[assignment]

_COURTESY = (0.0005, 0.002)  # seconds


class Turns:
    """For the writers of one database; ``path`` is None if it is in memory."""

    def __init__(self, path: str | None, wait: float) -> None:
        self._path = None if path is None or fcntl is None else f"{path}-turns"
        self._wait = wait
        self._ours = Lock()

    def begin(self, connection: sqlite3.Connection) -> None:
        """A transaction with the write lock; raises if it cannot be had in time."""
        end = time.monotonic() + self._wait
        if not self._ours.acquire(timeout=self._wait):
            raise sqlite3.OperationalError("database is locked")
        try:
            self._let_others_first()
            self._begin(connection, end)
        except BaseException:
            self._ours.release()
            raise

    def end(self) -> None:
        self._ours.release()

    def _begin(self, connection: sqlite3.Connection, end: float) -> None:
        def begin() -> None:
            connection.execute("begin immediate")

        try:
            begin()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            with self._waiting():
                patiently(begin, end - time.monotonic())

    def _let_others_first(self) -> None:
        """A moment's pause if somebody is waiting already."""
        if self._path is None:
            return
        with self._file(self._path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(random.uniform(*_COURTESY))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """For those who come later to see."""
        if self._path is None:
            yield
            return
        with self._file(self._path) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    @staticmethod
    @contextmanager
    def _file(path: str) -> Iterator[int]:
        """Opened anew each time: a lock belongs to an opening, and ends with it."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            yield file
        finally:
            os.close(file)
