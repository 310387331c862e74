"""A small pool for drivers that bring none we want, for asyncio: last in, first out."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.errors import ConnectionUnavailable

# A connection that lay idle for so long is asked whether it still lives.
_SUSPECT_AFTER = 30.0


class AsyncPool:
    """At most ``size`` connections, opened when they are needed."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Any]],
        lives: Callable[[Any], Awaitable[bool]],
        size: int,
        wait: float,
        drop: Callable[[Any], None] | None = None,
    ) -> None:
        self._connect = connect
        self._lives = lives
        self._drop = drop or _close
        self._wait = wait
        self._free = asyncio.Semaphore(size)
        self._idle: list[tuple[Any, float]] = []
        self._closed = False

    async def take(self) -> Any:
        if self._free.locked():
            await self._stand_in_line()
        else:
            await self._free.acquire()
        try:
            while self._idle:
                connection, since = self._idle.pop()
                if time.monotonic() - since < _SUSPECT_AFTER or await self._lives(connection):
                    return connection
                self._drop(connection)
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: Any) -> None:
        """Takes back one that is in order."""
        if self._closed:
            self._drop(connection)
        else:
            self._idle.append((connection, time.monotonic()))
        self._free.release()

    def discard(self, connection: Any) -> None:
        """Takes back one that may not be in order."""
        self._drop(connection)
        self._free.release()

    def forget(self) -> None:
        """The server went away: none of the idle ones lives."""
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            self._drop(connection)

    def idle(self) -> list[Any]:
        return [connection for connection, _ in self._idle]

    async def close(self) -> None:
        self._closed = True
        self.forget()
        # A transport says goodbye in the loop's next round.
        await asyncio.sleep(0)

    async def _stand_in_line(self) -> None:
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait)
        except TimeoutError:
            raise ConnectionUnavailable(
                f"all connections were in use for {self._wait} seconds: raise pool_size"
            ) from None


def _close(connection: Any) -> None:
    connection.close()
