"""What runners are made of: protocols, the loop that drives a plan, and pools of connections."""

import asyncio
import select
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Lock, Semaphore
from typing import Any, Protocol, TypeVar

from laneway.errors import ConnectionUnavailable, InvalidOption
from laneway.plan import Plan, Row, Statement

# The two worlds: what runs a plan, and the loop that drives it.

T = TypeVar("T")

Execute = Callable[[Statement], Sequence[Row]]
AsyncExecute = Callable[[Statement], Awaitable[Sequence[Row]]]

_LONG = 30  # times the usual, for what may take long: a migration, for one


class Runner(Protocol):
    """Runs plans on connections of its own; one statement is one transaction unless ``atomic``."""

    def run(self, plan: Plan[T], *, atomic: bool = False) -> T: ...

    def close(self) -> None: ...


class AsyncRunner(Protocol):
    """The same for asyncio."""

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T: ...

    async def close(self) -> None: ...


def drive(plan: Plan[T], execute: Execute) -> T:
    """Runs the plan to its end, one statement after the other."""
    try:
        statement = next(plan)
        while True:
            statement = plan.send(execute(statement))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def drive_async(plan: Plan[T], execute: AsyncExecute) -> T:
    """The same for asyncio."""
    try:
        statement = next(plan)
        while True:
            statement = plan.send(await execute(statement))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def patience(statement: Statement, seconds: float | None) -> float | None:
    """How long this statement may take, if a usual one may take ``seconds``."""
    return seconds * _LONG if seconds is not None and statement.long else seconds


# Whether an idle connection has been ended from the other side: no round trip, one system call.

# Seconds. A firewall that forgot a connection says so only when something is sent: what was idle
# for longer is asked by a round trip before it is used.
CHECK_AFTER = 5.0
# A connection that nobody needed for so long is closed.
KEEP_IDLE = 600.0

_ANYTHING = 1 | 8 | 16  # POLLIN, POLLERR, POLLHUP: named so on Unix only


def is_quiet(socket: Any) -> bool:
    """Nothing came on this socket (or its number). An idle connection has nothing to say but its
    end, and seldom a notice."""
    if socket is None:
        return False
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(socket, _ANYTHING)
            return not poll.poll(0)
        return not select.select([socket], [], [], 0)[0]
    except (OSError, ValueError):  # closed on our side
        return False


# A small connection pool for asyncio: last in, first out.


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


# A small connection pool that threads may share: last in, first out.


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
        self._drop = drop or _close_quietly
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


def _close_quietly(connection: Any) -> None:
    with suppress(Exception):  # it may be closed already
        connection.close()
