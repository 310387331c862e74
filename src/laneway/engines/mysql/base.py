"""What every group of verbs is built on: names, statements, the clock, repeatable plans, and locks
of channels."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, wraps
from hashlib import sha256
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from laneway.clock import Clock, Clocked
from laneway.engines.times import micros
from laneway.errors import DatabaseFailed, InvalidName, PayloadTooLarge
from laneway.names import check_schema
from laneway.plan import Plan, Repeatable, Row, Statement

from . import render

# Names as bytes, ids computed from them, and the tables' prefix.

# MySQL allows 64 characters in a name; the longest of ours adds ``_channel_stats_v1``.
PREFIX_CHARACTERS = 40


def check_prefix(value: object) -> str:
    """The schema name, which the names of our tables begin with."""
    prefix = check_schema(value)
    if len(prefix) > PREFIX_CHARACTERS or any(ord(letter) > 0xFFFF for letter in prefix):
        raise InvalidName(
            f"the schema name {prefix!r} becomes the prefix of tables: use at most "
            f"{PREFIX_CHARACTERS} characters, all below U+10000"
        )
    return prefix


@lru_cache(maxsize=100_000)
def pair_id(queue: bytes, name: bytes) -> bytes:
    """The id of a channel or of a key: 128 bits of SHA-256 over both names, so that no tenant can
    choose a name whose id collides with another tenant's channel."""
    return sha256(b"%d:%b%b" % (len(queue), queue, name)).digest()[:16]


@overload
def text(value: bytes | str) -> str: ...
@overload
def text(value: bytes | str | None) -> str | None: ...
def text(value: bytes | str | None) -> str | None:
    """A name or text as it was read; some drivers decode bytes themselves."""
    return value.decode() if isinstance(value, bytes) else value


def joined(count: int, lines: bytes | str | None) -> list[str]:
    """What the server joined to one text, each with a semicolon behind it. It cuts texts that are
    too long for it, with no error."""
    items = (text(lines) or "").split(";")
    if len(items) != int(count) + 1:
        raise DatabaseFailed("the server cut a list: raise its group_concat_max_len", "22001")
    return items[:-1]


def data(value: str | None) -> bytes | None:
    """A name or text to write: bytes, so that no connection's character set changes it."""
    return None if value is None else value.encode()


# How much goes into one statement: the server accepts at most ``max_allowed_packet`` bytes.

T = TypeVar("T")

ANY_SERVER = 1024 * 1024
"""Bytes that every server in use accepts."""
_MAX_ROWS = 2_000
_MAX_BYTES = 8 * 1024 * 1024
_RESERVED = 4 * 1024  # for the statement around the values
_ROW = 64
_VALUE = 24  # a number, quotes, commas


def small_chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Chunks of small rows that every server accepts, without asking for its limit."""
    return chunks(rows, ANY_SERVER)


def check_fits(value: bytes | None, packet: int) -> None:
    """Raises PayloadTooLarge if a statement with just this value would be too long."""
    _check(_VALUE + _written_size(value), packet)


def chunks(items: Sequence[T], packet: int) -> Iterator[Sequence[T]]:
    """In order, each as large as one statement may be. An item is a row, or has a ``row``."""
    max_bytes = min(_MAX_BYTES, packet - _RESERVED)
    chunk: list[T] = []
    total = 0
    for item in items:
        size = _row_size(item if isinstance(item, tuple) else item.row, packet)  # type: ignore[attr-defined]
        if chunk and (total + size > max_bytes or len(chunk) >= _MAX_ROWS):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size
    if chunk:
        yield chunk


def _row_size(row: Sequence[Any], packet: int) -> int:
    size = _size(row)
    _check(size, packet)
    return size


def _size(row: Sequence[Any]) -> int:
    return _ROW + _VALUE * len(row) + sum(map(_written_size, row))


def _check(size: int, packet: int) -> None:
    if size > packet - _RESERVED:
        raise PayloadTooLarge(
            f"a payload, state or result needs up to {size} bytes in a statement (bytes may be "
            f"written as two), and the server accepts {packet}: raise max_allowed_packet on the "
            "server, or store the data elsewhere and publish a reference to it"
        )


def _written_size(value: object) -> int:
    """At most: drivers write bytes in hexadecimal, or escape some of them."""
    return 2 * len(value) if isinstance(value, bytes) else 0


# The life of the server: from its start, or from when it took over, to the next. What the life
# before handed out may be lost, and auto-increment would hand it out again.
#
# A life is known by the newest row of ``server_life``: it names the server that wrote it, and when
# that had started. On a replica that took over it names another one. The row belongs to the
# transaction that begins the life: whoever does not see it begins it once more, which only moves
# the counters on.

_NUMBERED = (
    "number_message",
    "number_fence",
    "number_history",
    "number_flow",
    "number_listener",
    "number_operation",
)
"""For each table whose ids are handed out; revisions of schedules are fences."""
_FAR = 2**32


P = ParamSpec("P")
S = TypeVar("S")


class MysqlSql(Clocked):
    """``schema`` is the prefix of our tables in the connected database. ``clock`` replaces the
    database's clock, for tests."""

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        self.schema = check_prefix(schema)
        self._own_clock = clock

    def statement(self, name: str, *params: Any) -> Statement:
        return render.statement(name, self.schema, params)

    def union(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """The query once for each row of parameters, in one statement."""
        return render.union(name, self.schema, rows)

    def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> Plan[None]:
        """Inserts rows in their order, in as many statements as the server's limit requires. Raises
        PayloadTooLarge if one row is too long for it."""
        packet = ANY_SERVER
        if any(_size(row) > ANY_SERVER - _RESERVED for row in rows):
            packet = yield from self.packet()
        for chunk in chunks(rows, packet):
            yield self.statement(name, chunk)

    def packet(self) -> Plan[int]:
        """How long a statement the server accepts."""
        rows = yield self.statement("max_allowed_packet")
        return int(rows[0][0])

    def check_fits(self, values: Iterable[bytes | None]) -> Plan[None]:
        """Raises PayloadTooLarge before a statement that is too long for the server: it would
        close the connection instead of reporting an error."""
        largest = max(values, key=lambda value: len(value or b""), default=None)
        if largest is not None and 4 * len(largest) > ANY_SERVER:
            check_fits(largest, (yield from self.packet()))

    def now(self) -> int | None:
        """The time to use, or None for the database's own clock."""
        return micros(self._clock()) if self._clock else None

    def server_life(self) -> Plan[int]:
        """Every verb that takes numbers asks for the life's number before, with the statement that
        it begins with (``_begun_life``) or with this one."""
        ((number,),) = yield self.statement("server_life")
        return (yield from self.begun_life(number))

    def begun_life(self, number: int | None) -> Plan[int]:
        """``number``: what the statement server_life answered, or a column like it."""
        if number:
            return int(number)
        yield self.statement("know_server")
        ((known,),) = yield self.statement("server_life")
        return int(known) or (yield from self.begin_life())

    def begin_life(self) -> Plan[int]:
        """Counters never go back, whatever becomes of the row that moved them. It is taken back at
        once, because its lock would last as long as the transaction.

        The number is the time: numbers of a lost life are not found here, but they were lower. If
        this server's clock is behind what was handed out, it is a random one beyond that."""
        ((now,),) = yield self.statement("life_clock")
        yield self.statement("before_numbers")
        last = 0
        for name in _NUMBERED:
            ((id,),) = yield self.statement(name, None)
            last = max(last, int(id))
        number = int(now)
        if number <= last:
            number = last + _FAR + secrets.randbelow(_FAR)
        for name in _NUMBERED:
            yield self.statement(name, number)
        yield self.statement("undo_numbers")
        yield self.statement("add_life", number)
        return number


def repeatable(
    verb: Callable[Concatenate[S, P], Plan[T]],
) -> Callable[Concatenate[S, P], Plan[T]]:
    """Makes the verb's plan a :class:`laneway.plan.Repeatable`: after a deadlock or a lock wait
    timeout rolled the transaction back, whoever owns the transaction may run the plan again."""

    @wraps(verb)
    def start(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        def again() -> Plan[T]:
            return verb(self, *args, **kwargs)

        return Repeatable(again)

    return start


ChannelRef = tuple[bytes, bytes, bytes]
"""Id, queue and name of a channel."""


class MysqlChannelLocks:
    """Locking channels. A session that has locked a channel's row may change its schedule, and no
    claim can start its messages meanwhile. Channels that have no row yet get one."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def lock_channels(self, channels: Iterable[tuple[bytes, bytes]]) -> Plan[list[bytes]]:
        """Locks the channels (queue, name) in the order of their ids, and returns the ids. Waits
        for channels that others hold."""
        rows = sorted((pair_id(queue, name), queue, name) for queue, name in set(channels))
        if rows:
            yield from self._sql.insert("lock_channels", rows)
        return [row[0] for row in rows]

    def add_channels(self, channels: Iterable[ChannelRef]) -> Plan[None]:
        """Adds channel rows that are missing, in the order of their ids. It may wait for another
        session that is adding the same ones: call it only while nothing else is locked. If that
        one's transaction stays open, its channels are left out."""
        for chunk in small_chunks(sorted(channels)):
            done = yield self._sql.statement("add_channels", chunk)._replace(if_free=True)
            for row in () if done else chunk:
                yield self._sql.statement("add_free_channel", [row])._replace(if_free=True)

    def lock_free_channels(self, ids: Sequence[bytes], now: int | None) -> Plan[Sequence[Row]]:
        """Locks those that nobody else holds; returns the columns of ``LockedChannel``."""
        return (yield self._sql.statement("lock_free_channels", ids, now))

    def wait_for_channel(self, id: bytes) -> Plan[bool]:
        """Whether it is ours now."""
        return bool((yield self._sql.statement("wait_for_channel", id)._replace(if_free=True)))
