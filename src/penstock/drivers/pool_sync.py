"""A small pool for drivers that bring none: last in, first out. Threads may share it."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Semaphore
from typing import Any

from penstock.errors import ConnectionUnavailable

# A connection that lay idle for so long is asked whether it still lives.
_SUSPECT_AFTER = 30.0


class Pool:
    """At most ``size`` connections, opened when they are needed."""

    def __init__(
        self,
        connect: Callable[[], Any],
        lives: Callable[[Any], bool],
        size: int,
        wait: float,
    ) -> None:
        self._connect = connect
        self._lives = lives
        self._wait = wait
        self._free = Semaphore(size)
        self._lock = Lock()
        self._idle: list[tuple[Any, float]] = []
        self._closed = False

    def take(self) -> Any:
        if not self._free.acquire(timeout=self._wait):
            raise ConnectionUnavailable(
                f"all connections were in use for {self._wait} seconds: raise pool_size"
            )
        try:
            while (found := self._pop()) is not None:
                connection, since = found
                if time.monotonic() - since < _SUSPECT_AFTER or self._lives(connection):
                    return connection
                _close(connection)
            return self._connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: Any) -> None:
        """Takes back one that is in order."""
        with self._lock:
            kept = not self._closed
            if kept:
                self._idle.append((connection, time.monotonic()))
        if not kept:
            _close(connection)
        self._free.release()

    def discard(self, connection: Any) -> None:
        """Takes back one that may not be in order."""
        _close(connection)
        self._free.release()

    def forget(self) -> None:
        """The server went away: none of the idle ones lives."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            _close(connection)

    def close(self) -> None:
        self._closed = True
        self.forget()

    def _pop(self) -> tuple[Any, float] | None:
        with self._lock:
            return self._idle.pop() if self._idle else None


def _close(connection: Any) -> None:
    with suppress(Exception):  # it may be closed already
        connection.close()
