"""Whether the caller's connection is in a transaction, and what a verb of several statements
needs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from laneway.errors import UnsupportedConnection
from laneway.plan import Statement


class Savepoint(NamedTuple):
    """All of a verb or nothing, on a caller's connection, where a verb takes several statements.

    On PostgreSQL an error ends the transaction. MySQL and SQLite undo only the statement that
    failed: a caller that catches the error and commits would keep half a verb: messages that no
    claim finds, or a key that is never freed. So a verb that fails is rolled back to a
    savepoint."""

    begin: Statement
    done: tuple[Statement, ...]
    undo: tuple[Statement, ...]


_RELEASE = Statement("release laneway_verb")
_SQLITE = Savepoint(
    Statement("savepoint laneway_verb"),
    (_RELEASE,),
    (Statement("rollback to laneway_verb"), _RELEASE),
)
# The next one takes its name over, so nobody need release it.
_MYSQL = Savepoint(
    Statement("savepoint laneway_verb", percent=True),
    (),
    (Statement("rollback to savepoint laneway_verb", percent=True),),
)


def savepoint_for(kind: str, dialect: str) -> Savepoint | None:
    """None where none is needed, or where it would do harm: of an object with an execute() nothing
    is known, and on SQLite the release of a savepoint that began the transaction commits it."""
    if dialect == "mysql":
        return _MYSQL
    return _SQLITE if dialect == "sqlite" and kind != "protocol" else None


def is_over(connection: Any) -> bool:
    """Whether SQLite gave up the whole transaction, as it does when the disk is full: then nothing
    is left to be undone, and an adapter would only begin another one."""
    return getattr(connection, "in_transaction", None) is False


# Whether the caller's connection is in a transaction: on one in autocommit mode, a call of several
# statements that fails in the middle would be half done.
#
# MySQL's connections are checked in ``mysql.py``, those of sqlite3 and of Django on SQLite where
# they are used.

_IDLE = 0  # as PostgreSQL's drivers call a connection outside of a transaction


def needs_check(dialect: str, *, several: bool) -> bool:
    """On PostgreSQL a verb is one statement, unless a call is larger than a batch (``several``)."""
    return several if dialect == "postgresql" else dialect == "sqlite"


def check_together(kind: str, connection: Any, dialect: str) -> None:
    """Raises UnsupportedConnection before anything is written."""
    if dialect == "sqlite":
        if kind == "sqlalchemy":
            _check_sqlalchemy_on_sqlite(connection)
        return
    commits_itself = _COMMITS_ITSELF.get(kind)
    if commits_itself is not None and commits_itself(connection):
        raise UnsupportedConnection(
            "this many messages take several statements, and the connection is in autocommit "
            "mode: begin a transaction first, pass fewer at once, or leave out connection="
        )


def opens_transactions(connection: Any) -> bool:
    """Whether an sqlite3 (or aiosqlite) connection begins by itself what its owner commits."""
    own_rules = getattr(connection, "autocommit", None) is True  # Python 3.12 and newer
    return connection.isolation_level is not None and not own_rules


def check_transaction(open: bool) -> None:
    """Verbs of several statements need a transaction; raises UnsupportedConnection."""
    if not open:
        raise UnsupportedConnection(
            "the connection is in autocommit mode: begin a transaction first "
            "(BEGIN IMMEDIATE, transaction.atomic() in Django, another isolation level than "
            "AUTOCOMMIT in SQLAlchemy), or leave out connection="
        )


def _check_sqlalchemy_on_sqlite(connection: Any) -> None:
    connection = _sqlalchemy_connection(connection)
    if connection.dialect.name != "sqlite":
        raise UnsupportedConnection(
            f"the connection is one of {connection.dialect.name}: this queue is in another "
            "database, on sqlite"
        )
    if not connection.in_transaction():
        # Its first statement would do the same; listeners may say BEGIN then.
        connection.begin()
    driver = connection.connection.driver_connection
    if not driver.in_transaction:
        check_transaction(opens_transactions(driver))
        # A savepoint outside of a transaction would be one, which its release commits.
        connection.exec_driver_sql("begin immediate")


def _sqlalchemy_connection(given: Any) -> Any:
    """The connection of a Session, or the connection itself."""
    return given if hasattr(given, "exec_driver_sql") else given.connection()


def _psycopg(connection: Any) -> bool:
    return bool(connection.autocommit) and connection.info.transaction_status == _IDLE


def _asyncpg(connection: Any) -> bool:
    return not connection.is_in_transaction()


def _sqlalchemy(connection: Any) -> bool:
    # Also of the drivers that SQLAlchemy dresses up, asyncpg for one.
    driver = _sqlalchemy_connection(connection).connection.dbapi_connection
    return bool(getattr(driver, "autocommit", False))


def _django(connection: Any) -> bool:
    return bool(connection.get_autocommit())


# Of other objects with an execute() nothing is known.
_COMMITS_ITSELF: dict[str, Callable[[Any], bool]] = {
    "psycopg": _psycopg,
    "psycopg2": _psycopg,
    "asyncpg": _asyncpg,
    "sqlalchemy": _sqlalchemy,
    "django": _django,
}
