"""What the caller's connection is, recognised by the names of its classes; and protocols for
others."""

import inspect
import re
from collections.abc import Sequence
from typing import Any, Protocol

from laneway.errors import UnsupportedConnection, with_article
from laneway.plan import Row

# The one-method protocol for connections that Laneway does not know.


class Executor(Protocol):
    """Runs one statement and answers its rows: with ``$1`` placeholders for PostgreSQL, with ``%s``
    for MySQL, where a statement without rows answers one row, the cursor's ``lastrowid``.

    It must not commit: the transaction is its owner's.

    >>> class MyConnection:
    ...     def execute(self, sql, params):
    ...         return self.driver.query(sql, list(params))
    """

    def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...


class AsyncExecutor(Protocol):
    """The same for asyncio."""

    async def execute(self, sql: str, params: Sequence[Any], /) -> Sequence[Row]: ...


# Recognises the caller's connection by the names of its classes, without importing anything.

KINDS = {
    "psycopg.Connection": "psycopg",
    "psycopg.AsyncConnection": "async psycopg",
    "asyncpg.connection.Connection": "async asyncpg",
    "asyncpg.pool.PoolConnectionProxy": "async asyncpg",
    "sqlalchemy.orm.session.Session": "sqlalchemy",
    "sqlalchemy.orm.scoping.scoped_session": "sqlalchemy",
    "sqlalchemy.engine.base.Connection": "sqlalchemy",
    "sqlalchemy.ext.asyncio.session.AsyncSession": "async sqlalchemy",
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": "async sqlalchemy",
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": "async sqlalchemy",
    "django.db.backends.base.base.BaseDatabaseWrapper": "django",
    "django.utils.connection.ConnectionProxy": "django",
    "psycopg2.extensions.connection": "psycopg2",
    "sqlite3.Connection": "sqlite3",
    "aiosqlite.core.Connection": "async aiosqlite",
    "pymysql.connections.Connection": "mysql",
    "MySQLdb.connections.Connection": "mysql",
    "aiomysql.connection.Connection": "async mysql",
    "asyncmy.connection.Connection": "async mysql",
}

# The others are for any database.
_DIALECTS = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "asyncpg": "postgresql",
    "sqlite3": "sqlite",
    "aiosqlite": "sqlite",
    "mysql": "mysql",
}

_CURSOR = re.compile(
    r"(psycopg2?|asyncpg|sqlite3|aiosqlite|pymysql|MySQLdb|aiomysql|asyncmy|django|sqlalchemy)\."
    r".*Cursor(Wrapper)?$",
    re.IGNORECASE,
)

# Pools, engines and factories: each call on them may use another connection, outside of any
# transaction. So they are refused, even if they have an ``execute``.
_LENT = "with pool.connection() as connection"
_BEGUN = "with engine.begin() as connection"
_ACQUIRED = "async with pool.acquire() as connection"
_OWN = "your own, or leave out connection= to use the queue's"
_MAKERS = {
    "psycopg_pool.pool.ConnectionPool": _LENT,
    "psycopg_pool.pool_async.AsyncConnectionPool": f"async {_LENT}",
    "psycopg2.pool.AbstractConnectionPool": "connection = pool.getconn()",
    "asyncpg.pool.Pool": _ACQUIRED,
    "aiomysql.pool.Pool": _ACQUIRED,
    "asyncmy.pool.Pool": _ACQUIRED,
    "sqlalchemy.engine.base.Engine": _BEGUN,
    "sqlalchemy.ext.asyncio.engine.AsyncEngine": f"async {_BEGUN}",
    "sqlalchemy.orm.session.sessionmaker": "with Session.begin() as session",
    "sqlalchemy.ext.asyncio.session.async_sessionmaker": "async with Session.begin() as session",
    "django.utils.connection.ConnectionHandler": "from django.db import connection",
    "django.db.utils.ConnectionHandler": "from django.db import connection",
    "laneway.client.sync.queue.Queue": _OWN,
    "laneway.client.aio.queue.AsyncQueue": _OWN,
}

_ADVICE = (
    "pass one of psycopg, asyncpg, PyMySQL, asyncmy, sqlite3, aiosqlite, SQLAlchemy or Django, or "
    "an object with one method execute(sql, params) that returns the rows"
)


def kind_of_class(kind: type) -> str | None:
    """The kind of connection, with "async " before it for asyncio; None for other classes."""
    return _known(kind)


def kind_of(connection: object, *, dialect: str, is_async: bool) -> str:
    """Which adapter fits; raises UnsupportedConnection if none does."""
    shown = _named(type(connection))
    kind = _known(type(connection))
    if kind is None:
        if instead := _instead(type(connection)):
            raise UnsupportedConnection(f"{shown} is not a connection: pass {instead}")
        kind = _protocol(connection)
    if kind is None:
        raise UnsupportedConnection(f"{shown} is not a connection that Laneway knows: {_ADVICE}")
    if kind.startswith("async ") != is_async:
        ours, other = ("AsyncQueue", "Queue") if is_async else ("Queue", "AsyncQueue")
        needed = "an async" if is_async else "a sync"
        raise UnsupportedConnection(
            f"{shown} cannot be used with {ours}: use {other}, or {needed} connection"
        )
    kind = kind.removeprefix("async ")
    if _DIALECTS.get(kind, dialect) != dialect:
        raise UnsupportedConnection(
            f"{shown} cannot be used: this queue is in another database, on {dialect}"
        )
    return kind


def _named(kind: type) -> str:
    """``an asyncpg.pool.Pool``"""
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return with_article(f"{module}{kind.__qualname__}")


def _known(kind: type) -> str | None:
    for base in kind.__mro__:
        name = f"{base.__module__}.{base.__qualname__}"
        # psycopg's classes say where they are exported, or where they are written.
        found = KINDS.get(name.replace("psycopg.connection.", "psycopg."))
        found = found or KINDS.get(name.replace("psycopg.connection_async.", "psycopg."))
        if found:
            return found
    return None


def _instead(kind: type) -> str | None:
    """What to pass, for objects that have an ``execute`` of another meaning than the protocol's."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
    for name in names:
        if name in _MAKERS:
            return _MAKERS[name] if _MAKERS[name] is _OWN else f"one that it gives: {_MAKERS[name]}"
    if kind is str:
        return "an open connection, not text"
    if "sqlalchemy.pool.base._ConnectionFairy" in names:
        return "the Session or Connection of SQLAlchemy itself, not the driver's below it"
    if any(_CURSOR.match(name) for name in names):
        return "the connection that the cursor belongs to"
    return None


def _protocol(connection: object) -> str | None:
    execute = getattr(connection, "execute", None)
    if not callable(execute):
        return None
    return "async protocol" if inspect.iscoroutinefunction(execute) else "protocol"
