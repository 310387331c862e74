"""The same for asyncio: aiosqlite, and SQLAlchemy on it."""

from asyncio import current_task
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from laneway import AsyncQueue
from laneway.errors import UnsupportedConnection
from tests.client.worlds import run_async


class Rollback(Exception):
    """Leaves the transaction."""


@asynccontextmanager
async def with_aiosqlite(path: Path) -> AsyncIterator[Any]:
    async with aiosqlite.connect(path) as connection:
        try:
            yield connection
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()


def as_dictionary(cursor: Any, row: Any) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@asynccontextmanager
async def with_dictionaries(path: Path) -> AsyncIterator[Any]:
    async with with_aiosqlite(path) as connection:
        connection.row_factory = as_dictionary
        yield connection
        assert await connection.execute_fetchall("select 1 as one") == [{"one": 1}]


@asynccontextmanager
async def with_bytes(path: Path) -> AsyncIterator[Any]:
    async with with_aiosqlite(path) as connection:
        connection.text_factory = bytes
        yield connection
        assert await connection.execute_fetchall("select 'text'") == [(b"text",)]


@asynccontextmanager
async def with_session(path: Path) -> AsyncIterator[Any]:
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(f"sqlite+aiosqlite:///{path}")
    try:
        async with asyncio.AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_connection(path: Path) -> AsyncIterator[Any]:
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(f"sqlite+aiosqlite:///{path}")
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


class Protocol:
    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Any) -> Any:
        named = {str(number): value for number, value in enumerate(params, 1)}
        return await self._connection.execute_fetchall(sql, named)


@asynccontextmanager
async def with_protocol(path: Path) -> AsyncIterator[Any]:
    async with with_aiosqlite(path) as connection:
        yield Protocol(connection)


WAYS = [
    with_aiosqlite,
    with_dictionaries,
    with_bytes,
    with_session,
    with_sqlalchemy_connection,
    with_protocol,
]
Way = Callable[[Path], AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize("way", WAYS)
@run_async
async def test_publish_and_settle_commit_with_the_caller(url: str, path: Path, way: Way) -> None:
    async with AsyncQueue(url) as queue:
        await queue.install()
        await queue.publish_many(["effect", "again"])
        one, two = await queue.claim(2)
        async with way(path) as connection:
            await queue.publish_many(range(20), connection=connection)
            await one.complete(connection=connection)
            await two.defer(state="s", connection=connection)
            assert not await queue.claim()
        assert len(await queue.claim(50)) == 21
        assert [e.outcome for e in await queue.history(one.id)] == ["completed"]


@pytest.mark.parametrize("way", WAYS)
@run_async
async def test_a_rollback_leaves_nothing(url: str, path: Path, way: Way) -> None:
    async with AsyncQueue(url) as queue:
        await queue.install()
        await queue.publish("kept")
        (message,) = await queue.claim()
        with suppress(Rollback):
            async with way(path) as connection:
                await queue.publish("gone", connection=connection)
                await message.complete(connection=connection)
                raise Rollback
        assert not await queue.claim()
        await message.complete()


@run_async
async def test_without_a_transaction_it_is_refused(url: str, path: Path) -> None:
    async with AsyncQueue(url) as queue, aiosqlite.connect(path, isolation_level=None) as mine:
        await queue.install()
        with pytest.raises(UnsupportedConnection, match="begin a transaction"):
            await queue.publish(1, connection=mine)
        assert not await queue.claim()


@pytest.mark.parametrize("way", ["AsyncConnection", "AsyncSession", "async_scoped_session"])
@run_async
async def test_sqlalchemy_in_autocommit_is_refused(url: str, path: Path, way: str) -> None:
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(
        f"sqlite+aiosqlite:///{path}", isolation_level="AUTOCOMMIT"
    )
    ways: dict[str, Callable[[], Any]] = {
        "AsyncConnection": engine.connect,
        "AsyncSession": lambda: asyncio.AsyncSession(engine),
        "async_scoped_session": lambda: asyncio.async_scoped_session(
            asyncio.async_sessionmaker(engine), current_task
        ),
    }
    connection = ways[way]()
    async with AsyncQueue(url) as queue:
        await queue.install()
        if way == "AsyncConnection":
            await connection.start()
        with pytest.raises(UnsupportedConnection, match="AUTOCOMMIT"):
            await queue.publish(1, connection=connection)
        assert not await queue.claim()
    await connection.close()
    await engine.dispose()


@run_async
async def test_a_cursor_is_refused(url: str, path: Path) -> None:
    async with AsyncQueue(url) as queue, aiosqlite.connect(path) as mine, mine.cursor() as cursor:
        with pytest.raises(UnsupportedConnection, match="pass the connection"):
            await queue.publish(1, connection=cursor)
