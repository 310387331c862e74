"""Statements on a connection that the caller gave, in the caller's transaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.plan import Row, Statement

from .faults import missing_schema
from .given import kind_of
from .placeholders import in_order, percent
from .runner import Execute

if TYPE_CHECKING:
    from .protocols import Executor


def execute_on(connection: Any) -> Execute:
    """What runs statements on this connection; never begins or commits."""
    run = _ADAPTERS[kind_of(connection, is_async=False)]

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
    from .sqlalchemy_text import bound

    return connection.execute(*bound(statement)).all()  # type: ignore[no-any-return]


def _on_cursor(connection: Any, statement: Statement) -> Sequence[Row]:
    """Django and psycopg2: a cursor with ``%s``."""
    sql, order = percent(statement.sql)
    with connection.cursor() as cursor:
        cursor.execute(sql, in_order(statement.params, order))
        return cursor.fetchall()  # type: ignore[no-any-return]


def _on_protocol(connection: "Executor", statement: Statement) -> Sequence[Row]:
    return connection.execute(statement.sql, statement.params)


_ADAPTERS = {
    "psycopg": _on_psycopg,
    "sqlalchemy": _on_sqlalchemy,
    "cursor": _on_cursor,
    "protocol": _on_protocol,
}
