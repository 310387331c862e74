"""The same for asyncio: psycopg, asyncpg, SQLAlchemy on both, and the one-method protocol."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from laneway import AsyncQueue, NewMessage, Queue
from laneway.contract import BATCH
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import (
    BacklogFull,
    DatabaseFailed,
    LanewayError,
    SchemaMissing,
    UnsupportedConnection,
)
from tests.client.worlds import run_async
from tests.place import Place, fresh_schema


class Rollback(Exception):
    """Leaves the transaction."""


@asynccontextmanager
async def with_psycopg(place: Place) -> AsyncIterator[Any]:
    async with (
        await psycopg.AsyncConnection.connect(place.url, row_factory=dict_row) as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def with_asyncpg(place: Place) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(place.url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def with_asyncpg_pool(place: Place) -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(place.url, min_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def sqlalchemy_engine(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url)
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def with_session_on_psycopg(place: Place) -> AsyncIterator[Any]:
    async with (
        sqlalchemy_engine(place.psycopg_url) as engine,
        AsyncSession(engine) as session,
        session.begin(),
    ):
        yield session


@asynccontextmanager
async def with_session_on_asyncpg(place: Place) -> AsyncIterator[Any]:
    async with (
        sqlalchemy_engine(place.asyncpg_url) as engine,
        AsyncSession(engine) as session,
        session.begin(),
    ):
        yield session


@asynccontextmanager
async def with_connection_on_asyncpg(place: Place) -> AsyncIterator[Any]:
    async with sqlalchemy_engine(place.asyncpg_url) as engine, engine.begin() as connection:
        yield connection


class Wrapped:
    """Any other driver, with the one method."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Any]:
        return list(await self._connection.fetch(sql, *params))


@asynccontextmanager
async def with_protocol(place: Place) -> AsyncIterator[Any]:
    async with with_asyncpg(place) as connection:
        yield Wrapped(connection)


ADAPTERS = [
    with_psycopg,
    with_asyncpg,
    with_asyncpg_pool,
    with_session_on_psycopg,
    with_session_on_asyncpg,
    with_connection_on_asyncpg,
    with_protocol,
]
Open = Callable[[Place], AbstractAsyncContextManager[Any]]


@pytest.fixture(scope="module")
def odd(database: str) -> Place:
    """A schema, installed once, whose name trips whoever reads placeholders inside quotes."""
    place = Place(database, f'it\'s $1 :p1 %s 50% \\ "{fresh_schema()}"')
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
    return place


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A queue of the test's own."""
    return str(request.node.name)


@pytest.mark.parametrize("open_connection", ADAPTERS)
@run_async
async def test_everything_in_the_callers_transaction(
    odd: Place, name: str, open_connection: Open
) -> None:
    async with AsyncQueue(odd.url, schema=odd.schema, name=name) as queue:
        async with open_connection(odd) as connection:
            many = [
                NewMessage({"n": 1}, headers={"h": "ü%s:x"}, kind="k:%", key="a"),
                NewMessage("zwei %", priority=2),
                NewMessage(b"\0\xff", channel="other"),
                4,
                5,
            ]
            published = await queue.publish_many(many, connection=connection)
            again = await queue.publish(1, kind="k:%", key="a", connection=connection)
            assert again.existing and again.id == published[0].id
            assert not await queue.claim()
        messages = {m.id: m for m in await queue.claim(limit=10)}
        first, second, third, fourth, fifth = (messages[p.id] for p in published if p.id)
        assert (first.json(), first.headers, first.kind) == ({"n": 1}, {"h": "ü%s:x"}, "k:%")
        assert (second.text(), second.priority) == ("zwei %", 2)
        assert (third.payload, third.channel) == (b"\0\xff", "other")
        async with open_connection(odd) as connection:
            await first.complete(connection=connection)
            await second.defer(state={"page": 1}, connection=connection)
            await third.fail("broken", error=ValueError("x"), connection=connection)
            until = fourth.until
            length = (await queue.settings()).backoff_max
            assert await fourth.extend(length, connection=connection) > until
            await fifth.give_back(connection=connection)
        left = [m.id for m in await queue.claim(limit=10)]
        assert sorted(left) == sorted([second.id, fifth.id])
        assert len(await queue.dead_letters.list(queue=name)) == 1


@pytest.mark.parametrize("open_connection", ADAPTERS)
@run_async
async def test_rollback_leaves_nothing(odd: Place, name: str, open_connection: Open) -> None:
    async with AsyncQueue(odd.url, schema=odd.schema, name=name) as queue:
        await queue.publish("kept", channel="kept")
        (message,) = await queue.claim()
        with pytest.raises(Rollback):
            async with open_connection(odd) as connection:
                await queue.publish("gone", connection=connection)
                await message.complete(connection=connection)
                raise Rollback
        assert not await queue.claim()
        await message.complete()
        assert await queue.channel_stats(queue=name) == []


@pytest.mark.parametrize("open_connection", ADAPTERS)
@run_async
async def test_refusals_and_missing_schemas(odd: Place, name: str, open_connection: Open) -> None:
    async with AsyncQueue(odd.url, schema=odd.schema, name=name) as queue:
        missing = AsyncQueue(odd.url, schema=fresh_schema())
        with pytest.raises(SchemaMissing):
            async with open_connection(odd) as connection:
                await missing.publish(1, connection=connection)
        await queue.channel("full").limit(backlog=0)
        async with open_connection(odd) as connection:
            with pytest.raises(BacklogFull):
                await queue.publish(1, channel="full", connection=connection)
            await queue.publish(2, connection=connection)
        assert [m.json() for m in await queue.claim(limit=10)] == [2]


@pytest.fixture(scope="module")
def snapshots(server: EmbeddedPostgres) -> Place:
    """In a database whose transactions are REPEATABLE READ."""
    url = server.create_database("caller_async_snapshots")
    with psycopg.connect(url, autocommit=True) as connection:
        isolation = "default_transaction_isolation = 'repeatable read'"
        connection.execute(f"alter database caller_async_snapshots set {isolation}".encode())
    place = Place(url, fresh_schema())
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        queue.publish("first", key="k")
    return place


@pytest.mark.parametrize("open_connection", ADAPTERS)
@run_async
async def test_what_laneway_refuses_is_its_own_error_and_all_else_the_drivers(
    snapshots: Place, open_connection: Open
) -> None:
    async with AsyncQueue(snapshots.url, schema=snapshots.schema) as queue:
        with pytest.raises(Rollback):
            async with open_connection(snapshots) as connection:
                refused = "laneway: this needs READ COMMITTED"
                with pytest.raises(DatabaseFailed, match=refused) as told:
                    await queue.publish(2, key="k", on_duplicate="replace", connection=connection)
                assert told.value.sqlstate == "25000" and told.value.__cause__ is not None
                with pytest.raises(Exception, match="current transaction is aborted") as raised:
                    await queue.publish(3, connection=connection)
                assert not isinstance(raised.value, LanewayError)
                raise Rollback


@asynccontextmanager
async def psycopg_in_autocommit(place: Place) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(place.url, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def asyncpg_in_autocommit(place: Place) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(place.url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def session_in_autocommit(place: Place) -> AsyncIterator[Any]:
    async with sqlalchemy_engine(place.asyncpg_url) as engine:
        alone = engine.execution_options(isolation_level="AUTOCOMMIT")
        async with AsyncSession(alone) as session:
            yield session


@pytest.mark.parametrize(
    "open_connection", [psycopg_in_autocommit, asyncpg_in_autocommit, session_in_autocommit]
)
@run_async
async def test_what_is_no_single_statement_needs_a_transaction(
    odd: Place, name: str, open_connection: Open
) -> None:
    async with (
        AsyncQueue(odd.url, schema=odd.schema, name=name) as queue,
        open_connection(odd) as connection,
    ):
        with pytest.raises(UnsupportedConnection, match="begin a transaction"):
            await queue.publish_many([b""] * (BATCH + 1), connection=connection)
        assert await queue.channel_stats(queue=name) == []
        await queue.publish("one", connection=connection)
        assert len(await queue.claim()) == 1


@run_async
async def test_a_large_call_in_a_transaction(odd: Place, name: str) -> None:
    async with (
        AsyncQueue(odd.url, schema=odd.schema, name=name) as queue,
        with_session_on_asyncpg(odd) as connection,
    ):
        published = await queue.publish_many([b""] * (BATCH + 1), connection=connection)
        assert len(published) == BATCH + 1


@run_async
async def test_the_wrong_world_is_refused(place: Place) -> None:
    queue = AsyncQueue(place.url, schema=place.schema)
    with (
        psycopg.connect(place.url) as connection,
        pytest.raises(UnsupportedConnection, match="use Queue"),
    ):
        await queue.publish(1, connection=connection)
