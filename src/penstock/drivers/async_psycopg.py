"""psycopg 3 on a pool of our own: autocommit, so that one statement is one round trip."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool

from penstock.plan import Plan, Row, Statement

from .faults import NOT_READ_COMMITTED, is_away, sqlstate, translated
from .psycopg_columns import ColumnDumper
from .runner import drive_async

T = TypeVar("T")

_BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED", script=True)
_COMMIT = Statement("COMMIT", script=True)
_ROLLBACK = Statement("ROLLBACK", script=True)


class AsyncPsycopgRunner:
    """Connects at the first call. ``pooler`` is for PgBouncer in transaction mode: no prepared
    statements."""

    def __init__(self, url: str, *, pool_size: int, pooler: bool, wait: float = 30) -> None:
        self._url = url
        self._pool_size = pool_size
        self._wait = wait
        self._prepare_threshold = None if pooler else 5
        self._pool: AsyncConnectionPool[AsyncConnection[TupleRow]] | None = None
        self._opening = asyncio.Lock()
        # Set when the server's default is another isolation than the one that claim needs.
        self._explicit = False

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        try:
            pool = self._pool or await self._open()
            connection = await pool.getconn()
            try:
                return await self._run_on(connection, plan, atomic)
            finally:
                await pool.putconn(connection)
        except (psycopg.Error, OSError) as error:
            await self._heal(error)
            raise translated(error, self._url) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection in a transaction that commits at the end, or rolls back if that raises."""
        pool = self._pool or await self._open()
        async with pool.connection() as connection, connection.transaction():
            yield connection

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _run_on(
        self, connection: AsyncConnection[TupleRow], plan: Plan[T], atomic: bool
    ) -> T:
        async def execute(statement: Statement) -> Sequence[Row]:
            return await _execute(connection, statement)

        async def execute_alone(statement: Statement) -> Sequence[Row]:
            return await self._execute_alone(connection, statement)

        if not atomic:
            return await drive_async(plan, execute_alone)
        await _execute(connection, _BEGIN)
        try:
            result = await drive_async(plan, execute)
        except BaseException:
            await _roll_back(connection)
            raise
        await _execute(connection, _COMMIT)
        return result

    async def _execute_alone(
        self, connection: AsyncConnection[TupleRow], statement: Statement
    ) -> Sequence[Row]:
        if not self._explicit:
            try:
                return await _execute(connection, statement)
            except psycopg.Error as error:
                if sqlstate(error) != NOT_READ_COMMITTED:
                    raise
                self._explicit = True
        await _execute(connection, _BEGIN)
        try:
            rows = await _execute(connection, statement)
        except BaseException:
            await _roll_back(connection)
            raise
        await _execute(connection, _COMMIT)
        return rows

    async def _open(self) -> AsyncConnectionPool[AsyncConnection[TupleRow]]:
        async with self._opening:
            if self._pool is None:
                # The pool would only say that time is up; a first connection says why.
                trial = await AsyncConnection.connect(self._url)
                await trial.close()
                pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
                    self._url,
                    min_size=1,
                    max_size=self._pool_size,
                    timeout=self._wait,
                    kwargs={
                        "autocommit": True,
                        "prepare_threshold": self._prepare_threshold,
                        "client_encoding": "UTF8",  # what columns of text are sent in
                    },
                    configure=_configure,
                    open=False,
                    name="penstock",
                )
                await pool.open()
                self._pool = pool
            return self._pool

    async def _heal(self, error: Exception) -> None:
        """A server that went away broke all idle connections: find out now, not call by call."""
        if self._pool is not None and is_away(error):
            await self._pool.check()


async def _configure(connection: AsyncConnection[Any]) -> None:
    # As text, each payload would be written in hexadecimal and searched for quotes.
    connection.adapters.register_dumper(list, ColumnDumper)


async def _execute(connection: AsyncConnection[Any], statement: Statement) -> Sequence[Row]:
    cursor = AsyncRawCursor(connection, row_factory=tuple_row)
    if statement.script:
        await cursor.execute(statement.sql.encode())
        return ()
    await cursor.execute(statement.sql.encode(), statement.params, binary=True)
    return await cursor.fetchall()


async def _roll_back(connection: AsyncConnection[TupleRow]) -> None:
    if not connection.broken and not connection.closed:
        await _execute(connection, _ROLLBACK)
