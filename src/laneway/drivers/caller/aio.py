"""Statements on a connection that the caller gave, in the caller's transaction, for asyncio."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from laneway.drivers.errors import told_by_laneway
from laneway.drivers.placeholders import numbered
from laneway.drivers.runner import AsyncExecute, drive_async
from laneway.drivers.sqlite.url import text_as_str
from laneway.plan import Plan, Row, Statement

from .detect import kind_of
from .mysql import mysql_sqlalchemy_async, on_mysql_async
from .transactions import (
    Savepoint,
    check_together,
    check_transaction,
    is_over,
    needs_check,
    opens_transactions,
    savepoint_for,
)

T = TypeVar("T")

if TYPE_CHECKING:
    from .detect import AsyncExecutor


async def run_on(connection: Any, dialect: str, plan: Plan[T], *, several: bool = False) -> T:
    """All of the plan or nothing, on this connection; never begins or commits. ``several``: the
    call is too large for one statement, and must not be torn apart."""
    kind = kind_of(connection, dialect=dialect, is_async=True)
    if needs_check(dialect, several=several):
        await _check_together(kind, connection, dialect)
    execute = _executes(kind, connection)
    savepoint = savepoint_for(kind, dialect)
    if savepoint is None:
        return await drive_async(plan, execute)
    await execute(savepoint.begin)
    try:
        result = await drive_async(plan, execute)
    except BaseException:
        await _undo(connection, execute, savepoint)
        raise
    for statement in savepoint.done:
        await execute(statement)
    return result


def _executes(kind: str, connection: Any) -> AsyncExecute:
    run = _ADAPTERS[kind]

    async def execute(statement: Statement) -> Sequence[Row]:
        try:
            return await run(connection, statement)
        except Exception as error:
            if told := told_by_laneway(error):
                raise told from error
            raise

    return execute


async def _undo(connection: Any, execute: AsyncExecute, savepoint: Savepoint) -> None:
    """What cannot be undone is gone already: with the connection, or with the transaction, which
    MySQL ends after a deadlock."""
    if is_over(connection):
        return
    with suppress(Exception):
        for statement in savepoint.undo:
            await execute(statement)


async def _check_together(kind: str, connection: Any, dialect: str) -> None:
    if kind != "sqlalchemy":
        check_together(kind, connection, dialect)
        return
    if not hasattr(connection, "exec_driver_sql"):  # a session
        connection = await connection.connection()
    await connection.run_sync(lambda inner: check_together(kind, inner, dialect))


async def _on_psycopg(connection: Any, statement: Statement) -> Sequence[Row]:
    from psycopg import AsyncRawCursor
    from psycopg.rows import tuple_row

    async with AsyncRawCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(statement.sql.encode(), statement.params, binary=True)
        return await cursor.fetchall()


async def _on_asyncpg(connection: Any, statement: Statement) -> Sequence[Row]:
    return [tuple(row) for row in await connection.fetch(statement.sql, *statement.params)]


async def _on_sqlalchemy(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.percent:
        return await mysql_sqlalchemy_async(connection, statement)
    from .sqlalchemy_text import bound

    result = await connection.execute(*bound(statement))
    return result.all() if result.returns_rows else ()


async def _on_aiosqlite(connection: Any, statement: Statement) -> Sequence[Row]:
    """A connection that opens transactions by itself has one opened now, with the write lock."""
    if not connection.in_transaction:
        check_transaction(opens_transactions(connection))
        await connection.execute("begin immediate")
    sql = numbered(statement.sql)
    if statement.many:
        await connection.executemany(sql, statement.params)
        return ()
    with text_as_str(connection):
        if connection.row_factory is None:
            return list(await connection.execute_fetchall(sql, statement.params))
        # More hops to the connection's thread, but other rows of the caller stay as they are.
        async with connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(sql, statement.params)
            return await cursor.fetchall()  # type: ignore[no-any-return]


async def _on_protocol(connection: "AsyncExecutor", statement: Statement) -> Sequence[Row]:
    if not statement.many:
        return await connection.execute(statement.sql, statement.params)
    for row in statement.params:
        await connection.execute(statement.sql, row)
    return ()


_ADAPTERS = {
    "psycopg": _on_psycopg,
    "asyncpg": _on_asyncpg,
    "sqlalchemy": _on_sqlalchemy,
    "aiosqlite": _on_aiosqlite,
    "mysql": on_mysql_async,
    "protocol": _on_protocol,
}
