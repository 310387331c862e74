"""Connections of psycopg: bounded in time, with columns as arrays; and one that listens."""

import sys
from array import array
from collections.abc import Generator, Iterable
from itertools import chain
from struct import Struct
from time import monotonic
from typing import Any, ClassVar, TypeVar

from psycopg import AsyncConnection, AsyncRawCursor, Connection, sql
from psycopg.abc import AdaptContext, DumperKey, PyFormat
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import TupleRow
from psycopg.types.array import ListBinaryDumper

from laneway.drivers.deadline import NoAnswer
from laneway.drivers.listener import PATIENCE, Listener, ListenNotifier
from laneway.drivers.postgresql import PROBE, Pooled

# Connections of psycopg that do not wait for a silent server for ever.
#
# psycopg waits for its sockets in one place. What it drives there is a generator that is told of
# everything that comes, and ten times a second that nothing did.

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


# Columns as PostgreSQL's binary arrays.
#
# psycopg asks every item of a list what it is; in a batch of thousands that costs more than all
# else that the client does. Whole columns of one plain type need no such care.

_HEAD = Struct("!iiIii").pack  # dimensions, nulls, type of the elements, length, first index
_LENGTH = Struct("!i").pack
_EIGHT = array("I", (8).to_bytes(4))  # a number's length
_SWAPPED = sys.byteorder == "little"


class ColumnDumper(Dumper):
    """For every list: a plain column goes at once, anything else psycopg's way."""

    format = Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self._slow = ListBinaryDumper(cls, context)

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:
        kind = _kind(obj)
        return self._slow.get_key(obj, format) if kind is None else (ColumnDumper, kind)

    def upgrade(self, obj: list[Any], format: PyFormat) -> Any:
        kind = _kind(obj)
        return self._slow.upgrade(obj, format) if kind is None else _COLUMNS[kind](self.cls)

    def dump(self, obj: list[Any]) -> Any:
        return self._slow.dump(obj)


class _Column(Dumper):
    format = Format.BINARY
    element: ClassVar[int]

    def dump(self, obj: list[Any]) -> bytes:
        return b"".join(chain((_HEAD(1, 0, self.element, len(obj), 1),), self.parts(obj)))

    def parts(self, items: list[Any]) -> Iterable[bytes]:
        """Each item after its length."""
        return chain.from_iterable(zip(map(_LENGTH, map(len, items)), items, strict=True))


class _Bytes(_Column):
    oid, element = 1001, 17


class _Texts(_Column):
    oid, element = 1009, 25

    def parts(self, items: list[str]) -> Iterable[bytes]:
        return super().parts([item.encode() for item in items])


class _Numbers(_Column):
    oid, element = 1016, 20

    def parts(self, items: list[int]) -> Iterable[bytes]:
        """Woven without a call for each: a length, an upper and a lower half."""
        numbers = array("q", items)
        if _SWAPPED:
            numbers.byteswap()
        halves = array("I", numbers.tobytes())
        words = _EIGHT * (3 * len(items))
        words[1::3], words[2::3] = halves[0::2], halves[1::2]
        return (words.tobytes(),)


_COLUMNS: dict[type, type[_Column]] = {bytes: _Bytes, str: _Texts, int: _Numbers}


def _kind(items: list[Any]) -> type | None:
    """The type of all items, if they are plain ones of one type."""
    kinds = set(map(type, items))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is int and not -(2**63) <= min(items) <= max(items) < 2**63:
        return None
    return kind if kind in _COLUMNS else None


class PsycopgListener:
    """A psycopg 3 connection that listens."""

    def __init__(self, connection: AsyncBoundedConnection, channel: str) -> None:
        self._connection = connection
        self._channel = channel

    @classmethod
    async def open(cls, url: str, channel: str) -> "PsycopgListener":
        connection = await AsyncBoundedConnection.connect(
            url, autocommit=True, prepare_threshold=None
        )
        connection.patience = PATIENCE
        try:
            cursor = await connection.execute(PROBE)
            ((process, _),) = await cursor.fetchall()
            if process != connection.info.backend_pid:
                raise Pooled
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return cls(connection, channel)

    async def receive(self, seconds: float) -> list[str]:
        self._connection.patience = None
        notifies = self._connection.notifies(timeout=seconds, stop_after=1)
        heard = [notify.payload async for notify in notifies]
        self._connection.patience = PATIENCE
        return heard

    async def notify(self, payload: str) -> None:
        cursor = AsyncRawCursor(self._connection)
        await cursor.execute("SELECT pg_notify($1, $2)", (self._channel, payload))

    async def probe(self) -> None:
        await self._connection.execute("SELECT 1")

    async def close(self) -> None:
        await self._connection.close()


def psycopg_notifier(url: str, channel: str, wanted: frozenset[str]) -> ListenNotifier:
    async def connect() -> Listener:
        return await PsycopgListener.open(url, channel)

    return ListenNotifier(connect, wanted)
