"""A verb that fails on a caller's connection leaves nothing behind, whatever the caller does."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from laneway import AsyncQueue, Queue
from tests.client.worlds import run_async
from tests.sqlite.test_caller_connection import WAYS, Way, django_connection, with_protocol
from tests.sqlite.test_caller_connection import queue as queue  # a fixture
from tests.sqlite.test_caller_connection_async import WAYS as ASYNC_WAYS
from tests.sqlite.test_caller_connection_async import Way as AsyncWay
from tests.sqlite.test_caller_connection_async import with_aiosqlite
from tests.sqlite.test_caller_connection_async import with_protocol as with_async_protocol

REFUSE = """create trigger refuse before insert on laneway_waiting
    begin select raise(abort, 'refused in the middle'); end"""


@pytest.fixture
def refusing(queue: Queue, path: Path) -> Iterator[sqlite3.Connection]:
    """A publish takes its keys, and then cannot add its messages."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(REFUSE)
        yield connection


@pytest.mark.parametrize("way", [way for way in WAYS if way is not with_protocol])
def test_half_a_publish_is_undone(queue: Queue, refusing: Any, path: Path, way: Way) -> None:
    with way(path) as connection, pytest.raises(Exception, match="refused in the middle"):
        queue.publish("gone", key="k", connection=connection)
    refusing.execute("drop trigger refuse")
    assert queue.publish("again", key="k").status == "published"
    assert [message.text() for message in queue.claim(10)] == ["again"]


@pytest.mark.parametrize("way", [way for way in ASYNC_WAYS if way is not with_async_protocol])
@run_async
async def test_half_a_publish_is_undone_in_asyncio(
    refusing: Any, url: str, path: Path, way: AsyncWay
) -> None:
    async with AsyncQueue(url) as queue:
        async with way(path) as connection:
            with pytest.raises(Exception, match="refused in the middle"):
                await queue.publish("gone", key="k", connection=connection)
        refusing.execute("drop trigger refuse")
        assert (await queue.publish("again", key="k")).status == "published"


class Interrupted:
    """Cancels its task while the statement that takes the key is on its way."""

    def __init__(self, connection: Any) -> None:
        self._execute = connection.execute_fetchall

    async def __call__(self, sql: str, params: Any) -> Any:
        task = asyncio.current_task()
        if "dedupe" in sql and "insert" in sql and task is not None:
            task.cancel()
        return await self._execute(sql, params)


@run_async
async def test_a_cancelled_publish_is_undone(queue: Queue, url: str, path: Path) -> None:
    async with AsyncQueue(url) as mine, with_aiosqlite(path) as connection:
        connection.execute_fetchall = Interrupted(connection)
        with pytest.raises(asyncio.CancelledError):
            await mine.publish("gone", key="k", connection=connection)
    again = await asyncio.to_thread(queue.publish, "again", key="k")
    assert again.status == "published"


def test_django_without_autocommit_commits_when_told(queue: Queue, path: Path) -> None:
    with django_connection(path) as connection:
        connection.set_autocommit(False)
        queue.publish("gone", connection=connection)
        connection.rollback()
        queue.publish("kept", connection=connection)
        connection.commit()
        connection.set_autocommit(True)
    assert [message.text() for message in queue.claim(10)] == ["kept"]
