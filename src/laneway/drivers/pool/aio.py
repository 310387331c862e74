"""A small connection pool for asyncio: last in, first out."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from laneway.errors import ConnectionUnavailable, InvalidOption

from .quiet import CHECK_AFTER, KEEP_IDLE, is_quiet


class AsyncPool:
    """At most ``size`` connections, opened when they are needed.

    One that ended while it was idle is not given out: its ``socket`` tells, or ``is_alive`` asks
    the server, if it was idle for long.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Any]],
        socket: Callable[[Any], Any],
        is_alive: Callable[[Any], Awaitable[bool]],
        size: int,
        wait: float,
        drop: Callable[[Any], None] | None = None,
    ) -> None:
        self._connect = connect
        self._socket = socket
        self._is_alive = is_alive
        self._drop = drop or _close
        self._wait = wait
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[tuple[Any, float]] = []
        self._closed = False

    async def acquire(self) -> Any:
        self._check_loop()
        if self._free.locked():
            await self._wait_for_free()
        else:
            await self._free.acquire()
        try:
            while self._idle:
                connection, since = self._idle.pop()
                recent = time.monotonic() - since < CHECK_AFTER
                if recent and is_quiet(self._socket(connection)):
                    return connection
                if await self._is_alive_or_drop(connection):
                    return connection
                self.close_idle()  # those below were idle for longer
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def release(self, connection: Any) -> None:
        """Returns a connection that can be used again."""
        if self._closed:
            self._drop(connection)
        else:
            self._idle.append((connection, time.monotonic()))
            self._drop_oldest()
        self._free.release()

    def discard(self, connection: Any) -> None:
        """Closes a connection that may be unusable, and makes room for a new one."""
        self._drop(connection)
        self._free.release()

    def close_idle(self) -> None:
        """For when the server went away: no idle connection can be alive."""
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            self._drop(connection)

    def idle(self) -> list[Any]:
        return [connection for connection, _ in self._idle]

    async def close(self) -> None:
        self._closed = True
        self.close_idle()
        # Transports finish closing in the event loop's next iteration.
        await asyncio.sleep(0)

    def _check_loop(self) -> None:
        """Connections of one event loop do not work in another: they would wait for ever. A client
        that was closed can be used again, in any."""
        loop = asyncio.get_running_loop()
        if self._closed:
            self._closed = False
            self._loop, self._free = None, asyncio.Semaphore(self._size)
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise other_loop()

    async def _is_alive_or_drop(self, connection: Any) -> bool:
        alive = False
        try:
            alive = await self._is_alive(connection)
        finally:
            if not alive:
                self._drop(connection)
        return alive

    def _drop_oldest(self) -> None:
        """The one at the bottom, if it was never needed for long."""
        if time.monotonic() - self._idle[0][1] > KEEP_IDLE:
            self._drop(self._idle.pop(0)[0])

    async def _wait_for_free(self) -> None:
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait)
        except TimeoutError:
            raise ConnectionUnavailable(
                f"all connections were in use for {self._wait} seconds: raise pool_size"
            ) from None


def other_loop() -> InvalidOption:
    return InvalidOption(
        "this AsyncQueue is in use in another event loop: close() it there first, or open one for "
        "each loop"
    )


class AsyncHeld:
    """The connection that a plan runs on, which may be replaced on the way."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self.connection: Any = None
        self.writes = False
        """Whether anything was sent that may have been written."""

    async def take(self) -> Any:
        self.connection = await self._pool.acquire()
        return self.connection

    async def replace(self) -> Any:
        """For one that broke: those that are idle are as old, or older."""
        broken, self.connection = self.connection, None
        self._pool.discard(broken)
        self._pool.close_idle()
        return await self.take()


def _close(connection: Any) -> None:
    connection.close()
