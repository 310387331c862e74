"""Deadlines for asyncio drivers that have none that suits us: the connection is aborted."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from .limits import NoAnswer, moved


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


async def connect_within(
    connect: Callable[..., Awaitable[Any]], seconds: float, **options: Any
) -> Any:
    """A new connection, handshake and all."""
    try:
        async with asyncio.timeout(seconds):
            return await connect(**options)
    except TimeoutError as error:
        raise NoAnswer(seconds) from error
