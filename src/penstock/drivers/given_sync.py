"""Statements on a connection that the caller gave, in the caller's transaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.plan import Row, Statement

from .faults import missing_schema
from .given import check_transaction, kind_of, opens_transactions
from .mysql_given import mysql_sqlalchemy, on_mysql
from .placeholders import in_order, percent
from .runner import Execute

if TYPE_CHECKING:
    from .protocols import Executor


def execute_on(connection: Any, dialect: str) -> Execute:
    """What runs statements on this connection; never begins or commits."""
    run = _ADAPTERS[kind_of(connection, dialect=dialect, is_async=False)]

    def execute(statement: Statement) -> Sequence[Row]:
        try:
            return run(connection, statement)
        except Exception as error:
            if missing := missing_schema(error):
                raise missing from error
            raise

    return execute


def _on_psycopg(connection: Any, statement: Statement) -> Sequence[Row]:
    from psycopg import RawCursor
    from psycopg.rows import tuple_row

    with RawCursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(statement.sql.encode(), statement.params, binary=True)
        return cursor.fetchall()


def _on_sqlalchemy(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.percent:
        return mysql_sqlalchemy(connection, statement)
    from .sqlalchemy_text import bound

    result = connection.execute(*bound(statement))
    return result.all() if result.returns_rows else ()


def _on_cursor(connection: Any, statement: Statement) -> Sequence[Row]:
    """Django and psycopg2: a cursor with ``%s``."""
    if statement.percent:
        return on_mysql(connection, statement)
    sql, order = percent(statement.sql)
    if getattr(connection, "vendor", None) == "sqlite":
        check_transaction(not connection.get_autocommit())
    with connection.cursor() as cursor:
        if statement.many:
            cursor.executemany(sql, [in_order(row, order) for row in statement.params])
            return ()
        cursor.execute(sql, in_order(statement.params, order))
        return cursor.fetchall()  # type: ignore[no-any-return]


def _on_sqlite3(connection: Any, statement: Statement) -> Sequence[Row]:
    """A connection that opens transactions by itself has one opened now, with the write lock."""
    from .sqlite_runner import execute

    if not connection.in_transaction:
        check_transaction(opens_transactions(connection))
        connection.execute("begin immediate")
    return execute(connection, statement)


def _on_protocol(connection: "Executor", statement: Statement) -> Sequence[Row]:
    if not statement.many:
        return connection.execute(statement.sql, statement.params)
    for row in statement.params:
        connection.execute(statement.sql, row)
    return ()


_ADAPTERS = {
    "psycopg": _on_psycopg,
    "sqlalchemy": _on_sqlalchemy,
    "cursor": _on_cursor,
    "sqlite3": _on_sqlite3,
    "mysql": on_mysql,
    "protocol": _on_protocol,
}
