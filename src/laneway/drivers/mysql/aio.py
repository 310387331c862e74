"""asyncmy on a pool of our own: READ COMMITTED, and one transaction for each plan."""

import random
import re
from asyncio import sleep
from collections.abc import Sequence
from typing import Any, TypeVar

import asyncmy
from asyncmy.cursors import Cursor
from asyncmy.errors import MySQLError

from laneway.drivers.deadline import (
    CALL_TIMEOUT,
    CONNECT_TIMEOUT,
    PING_TIMEOUT,
    AsyncDeadline,
    connect_within_async,
    keep_alive,
)
from laneway.drivers.errors import (
    LOCK_WAIT,
    WrongServer,
    is_away,
    may_be_read_only,
    must_repeat,
    mysql_number,
    translated,
)
from laneway.drivers.placeholders import unformatted
from laneway.drivers.runner import AsyncHeld, AsyncPool, drive_async, patience
from laneway.errors import LanewayError
from laneway.plan import Plan, Repeatable, Row, Statement

from .server import SERVER_READ_ONLY
from .url import connect_options, database_of

T = TypeVar("T")

_TRIES = 20
_LOCK_WAITS = 2  # each takes innodb_lock_wait_timeout: whoever holds it so long is not done soon
_READS = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
_LOCKS = re.compile(
    r"\bfor (update|share)\b|\block in\b|_lock\(|\b(insert|update|delete|replace)\s", re.IGNORECASE
)
_MAX_PAUSE = 0.02  # seconds, times the number of the try
_ISOLATION = "set session transaction isolation level read committed"
# - strict mode: values that are too long are errors, not silently cut;
# - a lock wait fails after seconds instead of most of a minute;
# - the lists of wake ids that we group_concat are long;
# - a process that is stopped within a transaction loses it: its locks would make others wait. MySQL
#   ends idle sessions only, with and without a transaction; the pool asks before it uses one that
#   was idle for five seconds.
_SESSION = (
    "set session sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', "
    "session innodb_lock_wait_timeout = 5, session group_concat_max_len = 16777216 "
    "/*!80000 , session information_schema_stats_expiry = 0, session wait_timeout = 7 */"
    "/*M!100300 , session idle_transaction_timeout = 5 */"
)


class AsyncMysqlRunner:
    """Connects at the first call. ``pooler`` has no effect: all sessions are set up the same."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        pooler: bool,
        wait: float = 30,
        call_timeout: float | None = CALL_TIMEOUT,
    ) -> None:
        self._url = url
        self._call_timeout = call_timeout
        self._options = connect_options(url)
        self._database = database_of(url)
        self._pool = AsyncPool(self._connect, _socket, _is_alive, pool_size, wait)

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        """Repeats the plan, up to a limit, after deadlocks and lock wait timeouts, and if the
        connection was lost before the commit: then the server has rolled it back."""
        first, tries = plan, 0
        while True:
            held = AsyncHeld(self._pool)
            try:
                return await self._run(held, plan)
            except (MySQLError, OSError, EOFError) as error:
                tries += 1
                if is_away(error):
                    self._pool.close_idle()
                lost = is_away(error) and held.connection is not None and not held.writes
                again = must_repeat(error) or (lost and tries == 1)
                most = _LOCK_WAITS if mysql_number(error) == LOCK_WAIT else _TRIES
                if not (again and isinstance(first, Repeatable) and tries < most):
                    raise translated(error, self._url, sent=held.writes) from error
                plan = first.again()
            await sleep(random.random() * _MAX_PAUSE * tries)

    async def close(self) -> None:
        await self._pool.close()

    async def _run(self, held: AsyncHeld, plan: Plan[T]) -> T:
        await held.take()
        sent: list[Statement] = []

        async def execute(statement: Statement) -> Sequence[Row]:
            if statement.guest:
                return ()
            sent.append(statement)
            try:
                return await self._execute(held.connection, statement)
            except (MySQLError, OSError, EOFError) as error:
                # What was only read so far can be read on another connection.
                if not (is_away(error) and all(map(_only_reads, sent))):
                    raise
            await held.replace()
            return await self._execute(held.connection, statement)

        try:
            result = await drive_async(plan, execute)
            held.writes = True
            await self._commit(held)
        except LanewayError:
            await self._roll_back(held.connection)
            raise
        except MySQLError as error:
            if must_repeat(error):
                await self._roll_back(held.connection)
            else:
                self._discard(held.connection)
            if held.writes and is_away(error) and all(map(_only_reads, sent)):
                return result  # its end does not matter
            raise
        except BaseException as error:
            self._discard(held.connection)
            if held.writes and is_away(error) and all(map(_only_reads, sent)):
                return result
            raise
        self._pool.release(held.connection)
        return result

    async def _execute(self, connection: Any, statement: Statement) -> Sequence[Row]:
        try:
            with AsyncDeadline(_wire(connection), patience(statement, self._call_timeout)):
                return await _execute(connection, statement)
        except MySQLError as error:
            # Only the statement is undone, not its transaction.
            if statement.if_free and mysql_number(error) == LOCK_WAIT:
                return ()
            if await self._is_wrong_server(connection, error):
                raise WrongServer(str(error)) from None
            raise

    async def _commit(self, held: AsyncHeld) -> None:
        try:
            with AsyncDeadline(_wire(held.connection), self._call_timeout):
                await held.connection.commit()
        except MySQLError as error:
            if not await self._is_wrong_server(held.connection, error):
                raise
            held.writes = False
            raise WrongServer(str(error)) from None

    async def _is_wrong_server(self, connection: Any, error: MySQLError) -> bool:
        """Asked, because a transaction that is read-only refuses with the same errors."""
        if not may_be_read_only(error):
            return False
        return await _is_read_only(connection)

    def _discard(self, connection: Any) -> None:
        """None if it was given up for another that could not be had."""
        if connection is not None:
            self._pool.discard(connection)

    async def _roll_back(self, connection: Any) -> None:
        try:
            with AsyncDeadline(_wire(connection), self._call_timeout):
                await connection.rollback()
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.release(connection)

    async def _connect(self) -> Any:
        seconds = self._options.get("connect_timeout", CONNECT_TIMEOUT)
        connection = await connect_within_async(
            asyncmy.connect, seconds, database=self._database, **self._options
        )
        keep_alive(_socket(connection))
        try:
            with AsyncDeadline(_wire(connection), seconds):
                for text in (_ISOLATION, _SESSION):
                    await _execute(connection, Statement(text))
        except BaseException:
            connection.close()
            raise
        return connection


def _socket(connection: Any) -> Any:
    """There is no public name for it: PyMySQL has a socket, asyncmy a transport or a stream."""
    wire = _wire(connection)
    if wire is connection:
        return connection._sock
    return None if wire is None or wire.is_closing() else wire.get_extra_info("socket")


def _wire(connection: Any) -> Any:
    """What can be aborted: a transport, or PyMySQL's connection itself."""
    if hasattr(connection, "_rfile"):
        return connection
    writer = getattr(connection, "_writer", None)
    return getattr(connection, "_transport", None) or getattr(writer, "transport", None)


async def _is_alive(connection: Any) -> bool:
    """And worth keeping: after a fail-over the address of a server that is read-only may lead to
    another, which those who only read would never find out."""
    try:
        return not await _is_read_only(connection)
    except (MySQLError, OSError, EOFError):
        return False


async def _is_read_only(connection: Any) -> bool:
    with AsyncDeadline(_wire(connection), PING_TIMEOUT):
        ((read_only,),) = await _execute(connection, Statement(SERVER_READ_ONLY))
    return bool(int(read_only))


def _only_reads(statement: Statement) -> bool:
    """Without a lock, and in READ COMMITTED: it sees the same on any connection."""
    return _READS.match(statement.sql) is not None and _LOCKS.search(statement.sql) is None


class AsyncQuietCursor(Cursor):
    """Does not fetch warnings: that is a round trip, and an existing channel is no problem."""

    async def _show_warnings(self, conn: object) -> None:
        return


async def _execute(connection: Any, statement: Statement) -> Sequence[Row]:
    """The rows; or, if the statement returns none, the first id that it inserted."""
    async with connection.cursor(AsyncQuietCursor) as cursor:
        await cursor.execute(unformatted(statement), statement.params or None)
        if cursor.description is None:
            return [(cursor.lastrowid,)]
        return await cursor.fetchall()  # type: ignore[no-any-return]
