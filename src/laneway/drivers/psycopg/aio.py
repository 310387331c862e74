"""psycopg 3 on a pool of our own: autocommit, so that one statement is one round trip."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from laneway.drivers.deadline import (
    CALL_TIMEOUT,
    CONNECT_TIMEOUT,
    PING_TIMEOUT,
    keep_alive,
)
from laneway.drivers.errors import (
    DEADLOCK,
    NOT_READ_COMMITTED,
    WrongServer,
    is_away,
    may_be_read_only,
    never_ran,
    sqlstate,
    translated,
)
from laneway.drivers.postgresql import (
    BEGIN,
    IN_STANDBY,
    LOCK_TIMEOUT,
    PROBE,
    READ_COMMITTED,
    STANDBY,
    lock_timeout,
    warn_of_pooler,
)
from laneway.drivers.runner import AsyncHeld, AsyncPool, drive_async, patience
from laneway.plan import Plan, Row, Statement

from .connection import AsyncBoundedConnection, ColumnDumper

T = TypeVar("T")

_BEGIN = Statement(BEGIN, script=True)
_COMMIT = Statement("COMMIT", script=True)
_ROLLBACK = Statement("ROLLBACK", script=True)


class AsyncPsycopgRunner:
    """Connects at the first call. ``pooler`` is for PgBouncer in transaction mode: no prepared
    statements. A pooler that nobody announced is noticed and treated alike. One that ``lends``
    connections leaves their sessions as they are."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        pooler: bool,
        wait: float = 30,
        call_timeout: float | None = CALL_TIMEOUT,
        lends: bool = False,
    ) -> None:
        self._url = url
        self._options = _connect_options(url)
        self._lends = lends
        self._call_timeout = call_timeout
        self._pooler = pooler
        self._pool = AsyncPool(self._connect, _socket, _is_alive, pool_size, wait, _drop)
        # Set when the server's default is another isolation than ours: claim needs it, and keyed
        # publishes would fail where they only have to wait.
        self._explicit = False

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        held = AsyncHeld(self._pool)
        try:
            return await self._run_on(held, plan, atomic)
        except (psycopg.Error, OSError) as found:
            error = self._explained(held.connection, found)
            if is_away(error):
                self._pool.close_idle()
            raise translated(error, self._url, sent=held.writes) from error
        finally:
            self._give(held.connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection in a transaction that commits at the end, or rolls back if that raises."""
        connection = await self._pool.acquire()
        try:
            if self._is_standby(connection):
                raise translated(WrongServer(STANDBY), self._url)
            async with connection.transaction():
                connection.patience = None  # for what the caller sends
                try:
                    yield connection
                finally:
                    connection.patience = self._call_timeout
        finally:
            self._give(connection)

    async def close(self) -> None:
        await self._pool.close()

    def _give(self, connection: AsyncConnection[TupleRow] | None) -> None:
        """Back to the pool, unless it is broken, in the middle of something, or to a standby."""
        if connection is None:
            return
        idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
        if idle and not self._is_standby(connection):
            self._pool.release(connection)
        else:
            self._pool.discard(connection)

    def _is_standby(self, connection: AsyncConnection[TupleRow]) -> bool:
        """A pooler tells what some connection of its own was told once."""
        if self._pooler or connection.closed:
            return False
        return connection.info.parameter_status(IN_STANDBY) == "on"

    def _explained(
        self, connection: AsyncConnection[TupleRow] | None, error: psycopg.Error | OSError
    ) -> psycopg.Error | OSError:
        """A standby's refusals mean that the server is the wrong one."""
        if connection is None or not may_be_read_only(error) or not self._is_standby(connection):
            return error
        return WrongServer(str(error))

    async def _run_on(self, held: AsyncHeld, plan: Plan[T], atomic: bool) -> T:
        async def execute_alone(statement: Statement) -> Sequence[Row]:
            held.writes = held.writes or not statement.reads
            try:
                return await self._execute_alone(held.connection, statement)
            except (psycopg.Error, OSError) as found:
                error = self._explained(held.connection, found)
                if sqlstate(error) == DEADLOCK:  # the server has undone it
                    return await self._execute_alone(held.connection, statement)
                if not ((statement.reads and is_away(error)) or never_ran(error)):
                    raise
            await held.replace()
            return await self._execute_alone(held.connection, statement)

        connection = await held.take()
        if not atomic:
            return await drive_async(plan, execute_alone)

        async def execute(statement: Statement) -> Sequence[Row]:
            return await self._execute(connection, statement)

        try:
            await self._execute(connection, _BEGIN)
        except (psycopg.Error, OSError) as error:
            if not never_ran(error):
                raise
            connection = await held.replace()
            await self._execute(connection, _BEGIN)
        try:
            result = await drive_async(plan, execute)
        except BaseException:
            await self._roll_back(connection)
            raise
        held.writes = True
        await self._execute(connection, _COMMIT)
        return result

    async def _execute_alone(
        self, connection: AsyncBoundedConnection, statement: Statement
    ) -> Sequence[Row]:
        if not self._explicit or statement.outside:
            try:
                return await self._execute(connection, statement)
            except psycopg.Error as error:
                if sqlstate(error) != NOT_READ_COMMITTED:
                    raise
                self._explicit = True
        await self._execute(connection, _BEGIN)
        try:
            rows = await self._execute(connection, statement)
        except BaseException:
            await self._roll_back(connection)
            raise
        await self._execute(connection, _COMMIT)
        return rows

    async def _connect(self) -> AsyncBoundedConnection:
        connection = await AsyncBoundedConnection.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None if self._pooler else 5,
            client_encoding="UTF8",  # what columns of text are sent in
            **self._options,
        )
        keep_alive(connection.fileno())
        connection.patience = CONNECT_TIMEOUT
        # As text, each payload would be written in hexadecimal and searched for quotes.
        connection.adapters.register_dumper(list, ColumnDumper)
        try:
            await self._probe(connection)
        except BaseException:
            _drop(connection)
            raise
        connection.patience = self._call_timeout
        return connection

    async def _probe(self, connection: AsyncBoundedConnection) -> None:
        cursor = await connection.execute(PROBE, prepare=False)
        ((process, isolation),) = await cursor.fetchall()
        if isolation != READ_COMMITTED:
            self._explicit = True
        if process != connection.info.backend_pid:
            connection.prepare_threshold = None
            if not self._pooler:
                self._pooler = True
                warn_of_pooler(self._url)
        elif not (self._lends or self._pooler or self._call_timeout is None):
            cursor = AsyncRawCursor(connection)
            await cursor.execute(LOCK_TIMEOUT, (lock_timeout(self._call_timeout),), prepare=False)

    async def _execute(
        self, connection: AsyncBoundedConnection, statement: Statement
    ) -> Sequence[Row]:
        if statement.primary and self._is_standby(connection):
            raise WrongServer(STANDBY)
        connection.patience = patience(statement, self._call_timeout)
        cursor = AsyncRawCursor(connection, row_factory=tuple_row)
        if statement.script:
            await cursor.execute(statement.sql.encode())
            return ()
        if statement.copy:
            async with cursor.copy(statement.sql.encode()) as copy:
                for piece in statement.params:
                    await copy.write(piece)
            return ()
        await cursor.execute(statement.sql.encode(), statement.params, binary=True)
        return await cursor.fetchall()

    async def _roll_back(self, connection: AsyncBoundedConnection) -> None:
        if not connection.broken and not connection.closed:
            await self._execute(connection, _ROLLBACK)


def _connect_options(url: str) -> dict[str, Any]:
    """What the URL leaves open."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:  # connecting says so, in a text without the password
        return {}
    return {} if given.get("connect_timeout") else {"connect_timeout": int(CONNECT_TIMEOUT)}


def _socket(connection: AsyncConnection[TupleRow]) -> int | None:
    return None if connection.closed else connection.fileno()


async def _is_alive(connection: AsyncBoundedConnection) -> bool:
    connection.patience = PING_TIMEOUT
    try:
        await connection.execute(b"")
    except (psycopg.Error, OSError):
        return False
    return True


def _drop(connection: AsyncConnection[TupleRow]) -> None:
    connection.pgconn.finish()
