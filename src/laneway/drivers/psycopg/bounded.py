"""Connections of psycopg that do not wait for a silent server for ever.

psycopg waits for its sockets in one place. What it drives there is a generator that is told of
everything that comes, and ten times a second that nothing did.
"""

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow

from laneway.drivers.deadline.limits import NoAnswer

T = TypeVar("T")


class AsyncBoundedConnection(AsyncConnection[TupleRow]):
    """``patience``: after so many seconds without a byte it is closed, and NoAnswer is raised."""

    patience: float | None = None

    async def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        if self.patience is None:
            return await super().wait(gen, *args, **options)
        try:
            return await super().wait(_within(gen, self.patience), *args, **options)
        except _Silent as error:
            self.pgconn.finish()
            raise _cause(error, self.patience) from None


class BoundedConnection(Connection[TupleRow]):
    """The same for threads."""

    patience: float | None = None

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        if self.patience is None:
            return super().wait(gen, *args, **options)
        try:
            return super().wait(_within(gen, self.patience), *args, **options)
        except _Silent as error:
            self.pgconn.finish()
            raise _cause(error, self.patience) from None


def _within(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    end = monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                end = monotonic() + seconds
            elif monotonic() >= end:
                raise _Silent
            wanted = gen.send(ready)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


class _Silent(Exception):
    """No OSError, which psycopg would take for its socket's."""


def _cause(error: _Silent, seconds: float) -> BaseException:
    """A caller that was cancelled, so that psycopg asked the server to stop, is told that."""
    cause = error.__context__
    return NoAnswer(seconds) if cause is None or isinstance(cause, Exception) else cause
