"""Who writes next: threads of one client wait for a lock, processes let waiting ones go first."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

# Retry while another connection holds SQLite's lock.

T = TypeVar("T")

# Seconds. Our write transactions take milliseconds: whoever holds the lock for a minute is stuck.
BUSY_TIMEOUT = 60.0
_INITIAL_DELAY = 0.0005
_MAX_DELAY = 0.003

_BUSY = 5
_LOCKED = 6


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held a lock; the statement did nothing."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (_BUSY, _LOCKED)


def retry_while_busy(action: Callable[[], T], timeout: float = BUSY_TIMEOUT) -> T:
    """Retries with growing random delays while another connection holds the lock.

    Only for actions that change nothing when they fail: the begin of a transaction, or a read
    outside of one.
    """
    end = time.monotonic() + timeout
    delay = _INITIAL_DELAY
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
        time.sleep(delay * random.uniform(0.5, 1.5))
        delay = min(1.5 * delay, _MAX_DELAY)


# Who writes next: threads of one client wait for a lock, processes let waiting ones go first.
#
# SQLite has no queue of writers: a process that writes in a loop takes the lock again before one
# that sleeps between two retries wakes up. So waiting processes hold a shared lock on a small file
# beside the database, and a process that is about to write pauses briefly if there is such a lock.
# The kernel releases these locks when their process ends, however it ends; nobody ever waits for
# them.

try:
    import fcntl
except ImportError:  # Windows: chance decides which process is next
    fcntl = None  # type: ignore[assignment]

_PAUSE = (0.0005, 0.002)  # seconds


class WriteQueue:
    """The writers of one database; ``path`` is None if it is in memory."""

    def __init__(self, path: str | None, wait: float) -> None:
        self._lock_file = None if path is None or fcntl is None else f"{path}-writers"
        self._wait = wait
        self._thread_lock = Lock()

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begins a transaction with the write lock; raises if it is not free in time."""
        end = time.monotonic() + self._wait
        if not self._thread_lock.acquire(timeout=self._wait):
            raise sqlite3.OperationalError("database is locked")
        try:
            self._let_waiting_go_first()
            self._begin(connection, end)
        except BaseException:
            self._thread_lock.release()
            raise

    def end(self) -> None:
        self._thread_lock.release()

    def _begin(self, connection: sqlite3.Connection, end: float) -> None:
        def begin() -> None:
            connection.execute("begin immediate")

        try:
            begin()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            with self._waiting():
                retry_while_busy(begin, end - time.monotonic())

    def _let_waiting_go_first(self) -> None:
        """Pauses briefly if another process is waiting."""
        if self._lock_file is None:
            return
        with self._file(self._lock_file) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(random.uniform(*_PAUSE))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Shows other processes that this one waits."""
        if self._lock_file is None:
            yield
            return
        with self._file(self._lock_file) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    @staticmethod
    @contextmanager
    def _file(path: str) -> Iterator[int]:
        """Opened each time: a lock belongs to the open file, and ends when it is closed."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            yield file
        finally:
            os.close(file)
