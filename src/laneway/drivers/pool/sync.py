"""A small connection pool that threads may share: last in, first out."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Semaphore
from typing import Any

from laneway.errors import ConnectionUnavailable

from .quiet import CHECK_AFTER, KEEP_IDLE, is_quiet


class Pool:
    """At most ``size`` connections, opened when they are needed.

    One that ended while it was idle is not given out: its ``socket`` tells, or ``is_alive`` asks
    the server, if it was idle for long.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        socket: Callable[[Any], Any],
        is_alive: Callable[[Any], bool],
        size: int,
        wait: float,
        drop: Callable[[Any], None] | None = None,
    ) -> None:
        self._connect = connect
        self._socket = socket
        self._drop = drop or _close
        self._is_alive = is_alive
        self._wait = wait
        self._free = Semaphore(size)
        self._lock = Lock()
        self._idle: list[tuple[Any, float]] = []
        self._closed = False

    def acquire(self) -> Any:
        self._closed = False  # a client that was closed can be used again
        if not self._free.acquire(timeout=self._wait):
            raise ConnectionUnavailable(
                f"all connections were in use for {self._wait} seconds: raise pool_size"
            )
        try:
            while (found := self._pop()) is not None:
                connection, since = found
                recent = time.monotonic() - since < CHECK_AFTER
                if recent and is_quiet(self._socket(connection)):
                    return connection
                if self._is_alive_or_drop(connection):
                    return connection
                self.close_idle()  # those below were idle for longer
            return self._connect()
        except BaseException:
            self._free.release()
            raise

    def release(self, connection: Any) -> None:
        """Returns a connection that can be used again."""
        with self._lock:
            unneeded = connection if self._closed else self._keep(connection)
        if unneeded is not None:
            self._drop(unneeded)
        self._free.release()

    def discard(self, connection: Any) -> None:
        """Closes a connection that may be unusable, and makes room for a new one."""
        self._drop(connection)
        self._free.release()

    def close_idle(self) -> None:
        """For when the server went away: no idle connection can be alive."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            self._drop(connection)

    def close(self) -> None:
        self._closed = True
        self.close_idle()

    def _keep(self, connection: Any) -> Any:
        """Returns the one at the bottom, if it was never needed for long."""
        self._idle.append((connection, time.monotonic()))
        if time.monotonic() - self._idle[0][1] > KEEP_IDLE:
            return self._idle.pop(0)[0]
        return None

    def _is_alive_or_drop(self, connection: Any) -> bool:
        alive = False
        try:
            alive = self._is_alive(connection)
        finally:
            if not alive:
                self._drop(connection)
        return alive

    def _pop(self) -> tuple[Any, float] | None:
        with self._lock:
            return self._idle.pop() if self._idle else None


class Held:
    """The connection that a plan runs on, which may be replaced on the way."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.connection: Any = None
        self.writes = False
        """Whether anything was sent that may have been written."""

    def take(self) -> Any:
        self.connection = self._pool.acquire()
        return self.connection

    def replace(self) -> Any:
        """For one that broke: those that are idle are as old, or older."""
        broken, self.connection = self.connection, None
        self._pool.discard(broken)
        self._pool.close_idle()
        return self.take()


def _close(connection: Any) -> None:
    with suppress(Exception):  # it may be closed already
        connection.close()
