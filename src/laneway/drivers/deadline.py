"""How long a call waits for the other end, which may be silent without having closed anything."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

# The seconds that are waited for an answer, and what a connection shows of a wire that moves.

CALL_TIMEOUT = 20.0
"""Well above the waits for locks that the server itself ends, and below the default lease."""

CONNECT_TIMEOUT = 10.0
PING_TIMEOUT = 5.0
"""An idle connection that does not answer so soon is replaced by a new one."""

# Seconds, seconds and probes: the kernel finds a host that is gone during the longest call too.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_COUNTERS = slice(120, 136)  # of Linux's tcp_info: bytes that were acknowledged, and received


class NoAnswer(OSError):
    """Nothing came within the time for a call. The connection is closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing came back within {seconds:g} seconds")


def keep_alive(sock: Any) -> None:
    """Of a TCP connection; ``sock`` is its socket or the number of it."""
    if isinstance(sock, int):
        with suppress(OSError), socket.socket(fileno=socket.dup(sock)) as copy:
            keep_alive(copy)
        return
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):  # closed meanwhile
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):  # not every system has them
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def moved(sock: Any) -> bytes | None:
    """Something that changes when data goes over the wire; None where that cannot be said."""
    if not hasattr(socket, "TCP_INFO") or sock is None or sock.family == socket.AF_UNIX:
        return None
    with suppress(OSError):
        counters: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)[_COUNTERS]
        return counters or None
    return None


# Deadlines for asyncio drivers that have none that suits us: the connection is aborted.


class AsyncDeadline:
    """Aborts the transport when nothing has moved on the wire for ``seconds``, and raises NoAnswer
    in place of what the driver says then. A large call that is slow, but moves, goes on.

    asyncio.wait_for would make a task, and cancelling would ask the same silent server.
    """

    __slots__ = ("_expired", "_moved", "_seconds", "_timer", "_transport")

    def __init__(self, transport: Any, seconds: float | None) -> None:
        self._transport = transport
        self._seconds = seconds
        self._expired = False
        self._moved: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._expire, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._expired and isinstance(error, Exception):
            raise NoAnswer(self._seconds or 0.0) from error

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        before, self._moved = self._moved, moved(sock)
        if self._moved is not None and self._moved != before and self._seconds is not None:
            # Seen for the first time it says nothing yet: a tenth more, to see whether it moves.
            wait = self._seconds if before is not None else self._seconds / 10
            self._timer = loop.call_later(wait, self._expire, loop)
            return
        self._expired = True
        if self._transport is not None:
            self._transport.abort()


async def connect_within_async(
    connect: Callable[..., Awaitable[Any]], seconds: float, **options: Any
) -> Any:
    """A new connection, handshake and all."""
    try:
        async with asyncio.timeout(seconds):
            return await connect(**options)
    except TimeoutError as error:
        raise NoAnswer(seconds) from error


# Deadlines for PyMySQL: those of its socket, which begin anew with all that comes.


class Deadline:
    """Raises NoAnswer when nothing came for ``seconds``."""

    __slots__ = ("_connection", "_seconds")

    def __init__(self, connection: Any, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds

    def __enter__(self) -> None:
        # There is no public name for them once it is connected.
        self._connection._read_timeout = self._connection._write_timeout = self._seconds

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and isinstance(error.__context__, TimeoutError):
            raise NoAnswer(self._seconds or 0.0) from error


def connect_within(connect: Callable[..., Any], seconds: float, **options: Any) -> Any:
    """A new connection, handshake and all."""
    return connect(**options, read_timeout=seconds, write_timeout=seconds)
