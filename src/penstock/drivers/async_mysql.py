"""asyncmy on a pool of our own: READ COMMITTED, and one transaction a plan."""

import random
from asyncio import sleep
from collections.abc import Sequence
from typing import Any, TypeVar

import asyncmy
from asyncmy.cursors import Cursor
from asyncmy.errors import MySQLError

from penstock.errors import PenstockError
from penstock.plan import Plan, Repeatable, Row, Statement

from .faults import is_away, must_repeat, translated
from .mysql_url import connect_options, database_of
from .pool_async import AsyncPool
from .runner import drive_async

T = TypeVar("T")

_TRIES = 20
_PAUSE = 0.02  # seconds, at most, times the number of the try
_ISOLATION = "set session transaction isolation level read committed"
# Strict: nothing is cut in silence. Whoever waits for a lock knows soon. Lists of wakes are long.
# Whoever is stopped in the middle of a transaction loses it: its locks would hold up others.
_SESSION = (
    "set session sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', "
    "session innodb_lock_wait_timeout = 5, session group_concat_max_len = 16777216 "
    "/*!80000 , session information_schema_stats_expiry = 0 */"
    "/*M!100300 , session idle_transaction_timeout = 5 */"
)


class AsyncMysqlRunner:
    """Connects at the first call. ``pooler`` means nothing here: every session is set up alike."""

    def __init__(self, url: str, *, pool_size: int, pooler: bool, wait: float = 30) -> None:
        self._url = url
        self._options = connect_options(url)
        self._database = database_of(url)
        self._pool = AsyncPool(self._connect, _lives, pool_size, wait)

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T:
        """Deadlocks and lock waits are ours alone to repeat, as often as it takes."""
        first, tries = plan, 0
        while True:
            try:
                return await self._run(plan)
            except (MySQLError, OSError, EOFError) as error:
                tries += 1
                if is_away(error):
                    self._pool.forget()
                if not (must_repeat(error) and isinstance(first, Repeatable) and tries < _TRIES):
                    raise translated(error, self._url) from error
                plan = first.again()
            await sleep(random.random() * _PAUSE * tries)

    async def close(self) -> None:
        await self._pool.close()

    async def _run(self, plan: Plan[T]) -> T:
        connection = await self._pool.take()

        async def execute(statement: Statement) -> Sequence[Row]:
            return () if statement.guest else await _execute(connection, statement)

        try:
            result = await drive_async(plan, execute)
            await connection.commit()
        except PenstockError:
            await self._roll_back(connection)
            raise
        except MySQLError as error:
            if must_repeat(error):
                await self._roll_back(connection)
            else:
                self._pool.discard(connection)
            raise
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.give(connection)
        return result

    async def _roll_back(self, connection: Any) -> None:
        try:
            await connection.rollback()
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.give(connection)

    async def _connect(self) -> Any:
        connection = await asyncmy.connect(database=self._database, **self._options)
        try:
            for text in (_ISOLATION, _SESSION):
                await _execute(connection, Statement(text))
        except BaseException:
            connection.close()
            raise
        return connection


async def _lives(connection: Any) -> bool:
    try:
        await connection.ping(reconnect=False)
    except (MySQLError, OSError, EOFError):
        return False
    return True


class _Cursor(Cursor):
    """Asks for no warnings: a channel that is there already is none, and asking is a round trip."""

    async def _show_warnings(self, conn: object) -> None:
        return


async def _execute(connection: Any, statement: Statement) -> Sequence[Row]:
    """The rows; or, of a statement that has none, the first id that it inserted."""
    async with connection.cursor(_Cursor) as cursor:
        await cursor.execute(statement.sql, statement.params or None)
        if cursor.description is None:
            return [(cursor.lastrowid,)]
        return await cursor.fetchall()  # type: ignore[no-any-return]
