"""Statements on a caller's connection to MySQL.

A verb is several statements here, so a connection that commits each of them by itself would tear it
apart: it is refused.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from laneway.drivers.placeholders import unformatted
from laneway.errors import UnsupportedConnection
from laneway.plan import Row, Statement

_IN_TRANSACTION = 1
_NO_BACKSLASH_ESCAPES = 512
_DRIVERS = ("pymysql", "MySQLdb", "asyncmy", "aiomysql")


def on_mysql(connection: Any, statement: Statement) -> Sequence[Row]:
    """PyMySQL, mysqlclient and Django."""
    _check_transaction(connection)
    with connection.cursor(*_plain_cursor(connection)) as cursor:
        cursor.execute(unformatted(statement), tuple(statement.params) or None)
        return cursor.fetchall() if cursor.description else _inserted(cursor)


async def on_mysql_async(connection: Any, statement: Statement) -> Sequence[Row]:
    """asyncmy and aiomysql."""
    _check_transaction(connection)
    _check_escapes(connection)
    async with connection.cursor(*_plain_cursor(connection)) as cursor:
        await cursor.execute(unformatted(statement), tuple(statement.params) or None)
        return await cursor.fetchall() if cursor.description else _inserted(cursor)


def mysql_sqlalchemy(given: Any, statement: Statement) -> Sequence[Row]:
    """A Session or a Connection. The driver gets the statement as it is."""
    connection = given if hasattr(given, "exec_driver_sql") else given.connection()
    _check_transaction(connection.connection.driver_connection)
    return _result(connection.exec_driver_sql(statement.sql, tuple(statement.params)))


async def mysql_sqlalchemy_async(given: Any, statement: Statement) -> Sequence[Row]:
    """An AsyncSession or an AsyncConnection."""
    connection = given if hasattr(given, "exec_driver_sql") else await given.connection()
    raw = await connection.get_raw_connection()
    _check_transaction(raw.driver_connection)
    _check_escapes(raw.driver_connection)
    return _result(await connection.exec_driver_sql(statement.sql, tuple(statement.params)))


def _plain_cursor(connection: Any) -> list[type]:
    """The driver's first cursor: the connection's own may answer dictionaries. None for Django,
    whose cursor is its own."""
    drivers = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    return [import_module(f"{driver}.cursors").Cursor for driver in _DRIVERS if driver in drivers]


def _result(result: Any) -> Sequence[Row]:
    return result.all() if result.returns_rows else _inserted(result)


def _inserted(cursor: Any) -> Sequence[Row]:
    """What a statement without rows answers: the first id that it inserted."""
    return [(cursor.lastrowid,)]


def _check_transaction(connection: Any) -> None:
    if _commits_itself(connection):
        raise UnsupportedConnection(
            f"this {type(connection).__module__} connection commits each statement by itself: "
            "begin a transaction first (connection.begin(), transaction.atomic()), or leave out "
            "connection="
        )


def _check_escapes(connection: Any) -> None:
    """asyncmy and aiomysql write bytes with backslashes whatever the session says: payloads would
    be changed, and a quote in one would end it."""
    if getattr(connection, "server_status", 0) & _NO_BACKSLASH_ESCAPES:
        raise UnsupportedConnection(
            f"the sql_mode of this {type(connection).__module__} connection has "
            "NO_BACKSLASH_ESCAPES, which the driver does not heed: set another mode, or leave out "
            "connection="
        )


def _commits_itself(connection: Any) -> bool:
    if getattr(connection, "in_atomic_block", False):
        return False
    ask = getattr(connection, "get_autocommit", None)
    if ask is None or not ask():
        return False
    status = getattr(connection, "get_transaction_status", None)
    if status is not None:
        return not status()
    return not getattr(connection, "server_status", 0) & _IN_TRANSACTION
