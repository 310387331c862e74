"""asyncpg on a pool of our own: autocommit, so that one statement is one round trip."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from penstock.plan import Plan, Row, Statement

from .faults import NOT_READ_COMMITTED, is_away, sqlstate, translated, unreadable
from .runner import drive_async

T = TypeVar("T")

# The last is what a connection says that the server ended while it was idle.
_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    asyncpg.InternalClientError,
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    def get_reset_query(self) -> str:
        """We leave no session state; a reset would be a second round trip for each call."""
        return ""


class AsyncpgRunner:
    """Connects at the first call. ``pooler`` is for PgBouncer in transaction mode: no prepared
    statements, and a transaction around each, because asyncpg parses and binds in two steps."""

    def __init__(self, url: str, *, pool_size: int, pooler: bool, wait: float = 30) -> None:
        self._url = url
        self._pool_size = pool_size
        self._wait = wait
        self._statements = 0 if pooler else 100
        self._pool: Any = None
        self._opening = asyncio.Lock()
        # Also set when the server's default is another isolation than the one that claim needs.
        self._explicit = pooler

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        try:
            pool = self._pool or await self._open()
            async with pool.acquire(timeout=self._wait) as connection:
                return await self._run_on(connection, plan, atomic)
        except _ERRORS as error:
            if self._pool is not None and is_away(error):
                await self._pool.expire_connections()
            raise translated(error, self._url) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection in a transaction that commits at the end, or rolls back if that raises."""
        pool = self._pool or await self._open()
        async with pool.acquire(timeout=self._wait) as connection, connection.transaction():
            yield connection

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _run_on(self, connection: Any, plan: Plan[T], atomic: bool) -> T:
        async def execute(statement: Statement) -> Sequence[Row]:
            return await _execute(connection, statement)

        async def execute_alone(statement: Statement) -> Sequence[Row]:
            return await self._execute_alone(connection, statement)

        if not atomic:
            return await drive_async(plan, execute_alone)
        await connection.execute(_BEGIN)
        try:
            result = await drive_async(plan, execute)
        except BaseException:
            await _roll_back(connection)
            raise
        await connection.execute("COMMIT")
        return result

    async def _execute_alone(self, connection: Any, statement: Statement) -> Sequence[Row]:
        if not self._explicit:
            try:
                return await _execute(connection, statement)
            except asyncpg.PostgresError as error:
                if sqlstate(error) != NOT_READ_COMMITTED:
                    raise
                self._explicit = True
        await connection.execute(_BEGIN)
        try:
            rows = await _execute(connection, statement)
        except BaseException:
            await _roll_back(connection)
            raise
        await connection.execute("COMMIT")
        return rows

    async def _open(self) -> Any:
        async with self._opening:
            if self._pool is None:
                pool = asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=self._pool_size,
                    statement_cache_size=self._statements,
                    connection_class=_Connection,
                )
                try:
                    self._pool = await pool
                except ValueError:
                    raise unreadable(self._url) from None
            return self._pool


async def _execute(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.script:
        await connection.execute(statement.sql)
        return ()
    return await connection.fetch(statement.sql, *statement.params)  # type: ignore[no-any-return]


async def _roll_back(connection: Any) -> None:
    if not connection.is_closed():
        await connection.execute("ROLLBACK")
