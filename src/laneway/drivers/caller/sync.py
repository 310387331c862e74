"""Runs plans on the caller's connection, in the caller's transaction."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from laneway.drivers.errors import told_by_laneway
from laneway.drivers.placeholders import in_order, percent
from laneway.drivers.runner import Execute, drive
from laneway.drivers.sqlite.url import text_as_str
from laneway.plan import Plan, Row, Statement
from laneway.sqlfile import dollar_quoted

from .detect import Executor, kind_of
from .mysql import mysql_sqlalchemy, on_mysql
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


def run_on(connection: Any, dialect: str, plan: Plan[T], *, several: bool = False) -> T:
    """All of the plan or nothing, on this connection; never begins or commits. ``several``: the
    call takes more than one statement, so it needs a transaction."""
    kind = kind_of(connection, dialect=dialect, is_async=False)
    if needs_check(dialect, several=several):
        check_together(kind, connection, dialect)
    execute = _executes(kind, connection)
    savepoint = savepoint_for(kind, dialect)
    if savepoint is None:
        return drive(plan, execute)
    execute(savepoint.begin)
    try:
        result = drive(plan, execute)
    except BaseException:
        _undo(connection, execute, savepoint)
        raise
    for statement in savepoint.done:
        execute(statement)
    return result


def _executes(kind: str, connection: Any) -> Execute:
    run = _ADAPTERS[kind]

    def execute(statement: Statement) -> Sequence[Row]:
        try:
            return run(connection, statement)
        except Exception as error:
            if told := told_by_laneway(error):
                raise told from error
            raise

    return execute


def _undo(connection: Any, execute: Execute, savepoint: Savepoint) -> None:
    """What cannot be undone is gone already: with the connection, or with the transaction, which
    MySQL ends after a deadlock."""
    if is_over(connection):
        return
    with suppress(Exception):
        for statement in savepoint.undo:
            execute(statement)


def _on_psycopg(connection: Any, statement: Statement) -> Sequence[Row]:
    from psycopg import RawCursor
    from psycopg.rows import tuple_row

    with RawCursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(statement.sql.encode(), statement.params, binary=True)
        return cursor.fetchall()


def _on_sqlalchemy(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.percent:
        return mysql_sqlalchemy(connection, statement)
    if statement.script:
        _run_script(connection, statement.sql)
        return ()
    from .sqlalchemy_text import bound

    result = connection.execute(*bound(statement))
    return result.all() if result.returns_rows else ()


def _run_script(given: Any, script: str) -> None:
    """Of several statements, which asyncpg takes only within one."""
    from laneway.drivers.sqlite.runner import split

    connection = given if hasattr(given, "exec_driver_sql") else given.connection()
    parts = split(script)
    if connection.dialect.name == "postgresql":
        body = f"begin execute {dollar_quoted(script, 'script')}; end"
        parts = iter([f"do {dollar_quoted(body, 'laneway')}"])
    for part in parts:
        connection.exec_driver_sql(part, execution_options={"no_parameters": True})


def _on_django(connection: Any, statement: Statement) -> Sequence[Row]:
    if statement.percent:
        return on_mysql(connection, statement)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite" and not connection.connection.in_transaction:
            check_transaction(not connection.get_autocommit())
            cursor.execute("begin immediate")
        return _on_cursor(cursor, statement)


def _on_psycopg2(connection: Any, statement: Statement) -> Sequence[Row]:
    from psycopg2.extensions import cursor as plain_cursor  # type: ignore[import-untyped]

    # The connection's own may answer dictionaries.
    with connection.cursor(cursor_factory=plain_cursor) as cursor:
        return _on_cursor(cursor, statement)


def _on_cursor(cursor: Any, statement: Statement) -> Sequence[Row]:
    """One that takes ``%s``."""
    sql, order = percent(statement.sql)
    if statement.many:
        cursor.executemany(sql, [in_order(row, order) for row in statement.params])
        return ()
    cursor.execute(sql, in_order(statement.params, order))
    return cursor.fetchall() if cursor.description else ()


def _on_sqlite3(connection: Any, statement: Statement) -> Sequence[Row]:
    """A connection that opens transactions by itself has one opened now, with the write lock."""
    from sqlite3 import Cursor

    from laneway.drivers.sqlite.runner import execute

    if not connection.in_transaction:
        check_transaction(opens_transactions(connection))
        connection.execute("begin immediate")
    with text_as_str(connection):
        # A cursor of its own: the connection's may answer dictionaries.
        return execute(Cursor(connection), statement)


def _on_protocol(connection: "Executor", statement: Statement) -> Sequence[Row]:
    if not statement.many:
        return connection.execute(statement.sql, statement.params)
    for row in statement.params:
        connection.execute(statement.sql, row)
    return ()


_ADAPTERS = {
    "psycopg": _on_psycopg,
    "sqlalchemy": _on_sqlalchemy,
    "django": _on_django,
    "psycopg2": _on_psycopg2,
    "sqlite3": _on_sqlite3,
    "mysql": on_mysql,
    "protocol": _on_protocol,
}
