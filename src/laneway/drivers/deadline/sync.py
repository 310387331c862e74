"""Deadlines for PyMySQL: those of its socket, which begin anew with all that comes."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from .limits import NoAnswer


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
