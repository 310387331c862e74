"""asyncpg on a pool of our own: autocommit, so that one statement is one round trip."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from penstock.errors import PenstockError
from penstock.plan import Plan, Row, Statement

from .faults import NOT_READ_COMMITTED, is_away, sqlstate, translated, unreadable
from .pool_async import AsyncPool
from .runner import drive_async

T = TypeVar("T")

# The last is what a connection says that the server ended while it was idle.
_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    asyncpg.InternalClientError,
)
_PATIENCE = 5.0  # seconds
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


class AsyncpgRunner:
    """Connects at the first call. ``pooler`` is for PgBouncer in transaction mode: no prepared
    statements, and a transaction around each, because asyncpg parses and binds in two steps.

    asyncpg's own pool makes a task and two timers for every connection that comes back, to reset
    what we never set: a quarter of what a small call costs.
    """

    def __init__(self, url: str, *, pool_size: int, pooler: bool, wait: float = 30) -> None:
        self._url = url
        self._statements = 0 if pooler else 100
        self._pool = AsyncPool(self._connect, _lives, pool_size, wait, _drop)
        # Also set when the server's default is another isolation than the one that claim needs.
        self._explicit = pooler

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        try:
            connection = await self._take()
            try:
                result = await self._run_on(connection, plan, atomic)
            except (PenstockError, asyncpg.PostgresError):
                self._pool.give(connection)
                raise
            except BaseException:
                await self._leave(connection)
                raise
            self._pool.give(connection)
            return result
        except _ERRORS as error:
            if is_away(error):
                self._pool.forget()
            raise translated(error, self._url) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection in a transaction that commits at the end, or rolls back if that raises."""
        connection = await self._take()
        try:
            async with connection.transaction():
                yield connection
        except Exception:
            # The caller's own, mostly: all was rolled back, the connection is as good as before.
            self._give(connection)
            raise
        except BaseException:
            await self._leave(connection)
            raise
        self._give(connection)

    async def close(self) -> None:
        for connection in self._pool.idle():
            await connection.close()
        await self._pool.close()

    async def _take(self) -> Any:
        """One that the server has not ended while it was idle."""
        while (connection := await self._pool.take()).is_closed():
            self._pool.discard(connection)
        return connection

    def _give(self, connection: Any) -> None:
        """Who borrowed it may have begun something by hand."""
        if connection.is_closed() or connection.is_in_transaction():
            self._pool.discard(connection)
        else:
            self._pool.give(connection)

    async def _leave(self, connection: Any) -> None:
        """It may be in the middle of something, given up by its caller for one: asyncpg tells the
        server to stop before it closes."""
        try:
            with suppress(*_ERRORS, TimeoutError):
                await asyncio.shield(connection.close(timeout=_PATIENCE))
        finally:
            self._pool.discard(connection)

    async def _connect(self) -> Any:
        try:
            return await asyncpg.connect(self._url, statement_cache_size=self._statements)
        except ValueError:
            raise unreadable(self._url) from None

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


async def _lives(connection: Any) -> bool:
    try:
        await connection.execute("")
    except _ERRORS:
        return False
    return True


def _drop(connection: Any) -> None:
    connection.terminate()


async def _execute(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.script:
        await connection.execute(statement.sql)
        return ()
    return await connection.fetch(statement.sql, *statement.params)  # type: ignore[no-any-return]


async def _roll_back(connection: Any) -> None:
    if not connection.is_closed():
        await connection.execute("ROLLBACK")
