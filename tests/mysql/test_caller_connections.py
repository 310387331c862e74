"""Publish and settle inside the caller's transaction, on every driver."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from laneway import AsyncQueue, LeaseLost, Queue
from laneway.drivers.mysql.url import connect_options, database_of
from laneway.errors import BacklogFull, SchemaMissing, UnsupportedConnection
from tests.model.mysql import connect

Opened = tuple[Any, Callable[[], None], Callable[[], None]]


@contextmanager
def _pymysql(url: str) -> Iterator[Opened]:
    connection = connect(url)
    yield connection, connection.commit, connection.rollback
    connection.close()


@contextmanager
def _dictionaries(url: str) -> Iterator[Opened]:
    from pymysql.cursors import DictCursor

    connection = connect(url, cursorclass=DictCursor)
    yield connection, connection.commit, connection.rollback
    connection.close()


@contextmanager
def _connection(url: str) -> Iterator[Opened]:
    engine = sqlalchemy.create_engine(url.replace("mysql://", "mysql+pymysql://"))
    with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    engine.dispose()


@contextmanager
def _session(url: str) -> Iterator[Opened]:
    engine = sqlalchemy.create_engine(url.replace("mysql://", "mysql+pymysql://"))
    with Session(engine) as session:
        yield session, session.commit, session.rollback
    engine.dispose()


@contextmanager
def _django(url: str) -> Iterator[Opened]:
    import django
    import pymysql

    # Django asks for a mysqlclient of this age; PyMySQL stands in for it.
    pymysql.version_info = (2, 2, 8, "final", 0)
    pymysql.install_as_MySQLdb()
    from django.conf import settings

    if not settings.configured:
        settings.configure()
    django.setup()
    from django.db.backends.mysql.base import DatabaseWrapper

    options = connect_options(url)
    wrapper = DatabaseWrapper(
        {
            "ENGINE": "django.db.backends.mysql",
            "NAME": database_of(url),
            "USER": "root",
            "PASSWORD": "",
            "HOST": "127.0.0.1",
            "PORT": options["port"],
            "OPTIONS": {},
            "AUTOCOMMIT": True,
            "ATOMIC_REQUESTS": False,
            "CONN_MAX_AGE": 0,
            "CONN_HEALTH_CHECKS": False,
            "TIME_ZONE": None,
            "TEST": {},
        },
        alias="laneway",
    )
    wrapper.set_autocommit(False)
    yield wrapper, wrapper.commit, wrapper.rollback
    wrapper.close()


SYNC = {
    "PyMySQL": _pymysql,
    "PyMySQL with dictionaries": _dictionaries,
    "SQLAlchemy Connection": _connection,
    "SQLAlchemy Session": _session,
    "Django": _django,
}


@pytest.mark.parametrize("name", SYNC)
def test_the_callers_transaction(name: str, queue: Queue, url: str) -> None:
    with SYNC[name](url) as (mine, commit, rollback):
        queue.publish("gone", connection=mine, key="k")
        rollback()
        assert queue.publish_many([b"\x00'\"\\%s", "naïve ☃"], connection=mine)
        assert not queue.claim(10)
        commit()
        first, second = queue.claim(10)
        assert (first.payload, second.text()) == (b"\x00'\"\\%s", "naïve ☃")
        first.complete(connection=mine)
        rollback()
        first.complete(connection=mine)
        second.defer(state={"a": "ü"}, connection=mine)
        commit()
        with pytest.raises(LeaseLost):
            first.complete(connection=mine)
        queue.publish("after", connection=mine)
        commit()
    assert [m.text() for m in queue.claim(10)] == ["naïve ☃", "after"]


@pytest.mark.parametrize("name", SYNC)
def test_a_refused_publish_breaks_nothing(name: str, queue: Queue, url: str) -> None:
    queue.channel("full").limit(backlog=0)
    with SYNC[name](url) as (mine, commit, _):
        queue.publish("before", connection=mine)
        with pytest.raises(BacklogFull):
            queue.publish("no", channel="full", key="k", connection=mine)
        queue.publish("after", connection=mine)
        commit()
    assert [m.text() for m in queue.claim(10)] == ["before", "after"]


@pytest.mark.parametrize("name", SYNC)
def test_a_missing_schema_is_reported(name: str, url: str) -> None:
    with SYNC[name](url) as (mine, _, rollback), Queue(url) as queue:
        with pytest.raises(SchemaMissing, match="install"):
            queue.publish("x", connection=mine)
        rollback()


def test_an_autocommit_connection_is_refused(queue: Queue, url: str) -> None:
    mine = connect(url, autocommit=True)
    with pytest.raises(UnsupportedConnection, match="begin"):
        queue.publish("x", connection=mine)
    mine.begin()
    queue.publish("y", connection=mine)
    mine.commit()
    mine.close()
    assert [m.text() for m in queue.claim(10)] == ["y"]


def test_a_cursor_is_refused(queue: Queue, url: str) -> None:
    mine = connect(url)
    with (
        mine.cursor() as cursor,
        pytest.raises(UnsupportedConnection, match="pass the connection"),
    ):
        queue.publish("x", connection=cursor)
    mine.close()


@pytest.mark.parametrize("kind", [AsyncConnection, AsyncSession, None, "dictionaries"])
def test_the_callers_transaction_in_asyncio(kind: Any, queue: Queue, url: str) -> None:
    asyncio.run(_asyncio(kind, url))
    assert [m.text() for m in queue.claim(10)] == ["kept"]


async def _asyncio(kind: Any, url: str) -> None:
    import asyncmy
    from asyncmy.cursors import DictCursor

    engine = create_async_engine(url.replace("mysql://", "mysql+asyncmy://"))
    async with AsyncQueue(url) as queue:
        mine: Any
        driver = kind in (None, "dictionaries")
        if driver:
            cursors = {"cursor_cls": DictCursor} if kind else {}
            mine = await asyncmy.connect(
                database=database_of(url), **connect_options(url), **cursors
            )
        else:
            mine = AsyncSession(engine) if kind is AsyncSession else await engine.connect()
        await queue.publish("gone", connection=mine)
        await mine.rollback()
        await queue.publish("kept", connection=mine)
        await mine.commit()
        (message,) = await queue.claim(10)
        await message.give_back(connection=mine)
        await mine.commit()
        await (mine.ensure_closed() if driver else mine.close())
    await engine.dispose()


@pytest.mark.parametrize("wrapped", [False, True])
def test_asyncmy_ignores_no_backslash_escapes(queue: Queue, url: str, wrapped: bool) -> None:
    asyncio.run(_without_backslashes(url, wrapped))
    assert not queue.claim()


async def _without_backslashes(url: str, wrapped: bool) -> None:
    engine = create_async_engine(url.replace("mysql://", "mysql+asyncmy://"))
    async with AsyncQueue(url) as queue, engine.connect() as connection:
        await connection.exec_driver_sql("set session sql_mode = 'NO_BACKSLASH_ESCAPES'")
        raw: Any = (await connection.get_raw_connection()).driver_connection
        with pytest.raises(UnsupportedConnection, match="NO_BACKSLASH_ESCAPES"):
            await queue.publish(b"\\", connection=connection if wrapped else raw)
    await engine.dispose()
