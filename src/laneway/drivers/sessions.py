"""Transactions of SQLAlchemy, for handlers that ask for a session: an engine of our own, on the
driver and the URL of the worker."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from laneway.errors import InvalidCall
from laneway.extras import needs

from .choice import OWN_POOL
from .deadline import CONNECT_TIMEOUT

with needs("Handlers that ask for a session", "SQLAlchemy", "sqlalchemy"):
    from sqlalchemy import create_engine, event
    from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
    from sqlalchemy.orm import Session

# A connection that the server has ended meanwhile is found out before a handler gets it, and the
# verbs of a queue need this isolation.
_ENGINE = {
    "max_overflow": 0,
    "pool_pre_ping": True,
    "pool_logging_name": OWN_POOL,
    "isolation_level": "READ COMMITTED",
}


class AsyncSessionLender:
    """``asyncpg``: by that driver; else by psycopg."""

    def __init__(self, url: str, *, asyncpg: bool, pool_size: int, pooler: bool) -> None:
        name = "asyncpg" if asyncpg else "psycopg"
        # Not by SQLAlchemy's URL: what ours says about TLS and hosts, the driver itself reads.
        self._engine = create_async_engine(
            f"postgresql+{name}://{'?prepared_statement_cache_size=0' if asyncpg else ''}",
            async_creator=_asyncpg(url, pooler) if asyncpg else _async_psycopg(url, pooler),
            pool_size=pool_size,
            **_ENGINE,
        )

    @asynccontextmanager
    async def transaction(self, wanted: Any) -> AsyncIterator[Any]:
        """A session of this class, or a connection, in a transaction that commits at the end, or
        rolls back if that raises."""
        if issubclass(wanted, AsyncConnection):
            async with self._engine.begin() as connection:
                yield connection
            return
        session = wanted(self._engine, expire_on_commit=False)
        async with session, session.begin():
            await session.connection()  # now, so that a database that is away is known before
            with _only_we_commit(session.sync_session):
                yield session

    async def close(self) -> None:
        await self._engine.dispose()


class SessionLender:
    """The same for threads, by psycopg."""

    def __init__(self, url: str, *, pool_size: int, pooler: bool) -> None:
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=_psycopg(url, pooler),
            pool_size=pool_size,
            **_ENGINE,
        )

    @contextmanager
    def transaction(self, wanted: Any) -> Iterator[Any]:
        """As that of AsyncSessionLender."""
        if not issubclass(wanted, Session):
            with self._engine.begin() as connection:
                yield connection
            return
        session = wanted(self._engine, expire_on_commit=False)
        with session, session.begin():
            session.connection()
            with _only_we_commit(session):
                yield session

    def close(self) -> None:
        self._engine.dispose()


@contextmanager
def _only_we_commit(session: Session) -> Iterator[None]:
    """A handler that commits by itself would keep its effects though its message is not completed.
    Its savepoints are its own."""

    def refuse(session: Session) -> None:
        if not session.in_nested_transaction():
            raise InvalidCall(
                "the worker commits the session of a handler, together with the completion of its "
                "message: leave commit() out; begin_nested() is a savepoint"
            )

    event.listen(session, "before_commit", refuse)
    try:
        yield
    finally:
        event.remove(session, "before_commit", refuse)


def _asyncpg(url: str, pooler: bool) -> Any:
    import asyncpg

    from .asyncpg import _address

    address, seconds = _address(url)

    async def connect() -> Any:
        size = {"statement_cache_size": 0} if pooler else {}
        return await asyncpg.connect(address, timeout=seconds, **size)

    return connect


def _psycopg_options(url: str, pooler: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"client_encoding": "UTF8"}
    if pooler:
        options["prepare_threshold"] = None
    if "connect_timeout=" not in url:
        options["connect_timeout"] = int(CONNECT_TIMEOUT)
    return options


def _async_psycopg(url: str, pooler: bool) -> Any:
    from psycopg import AsyncConnection

    async def connect() -> Any:
        return await AsyncConnection.connect(url, **_psycopg_options(url, pooler))

    return connect


def _psycopg(url: str, pooler: bool) -> Any:
    from psycopg import Connection

    return lambda: Connection.connect(url, **_psycopg_options(url, pooler))
