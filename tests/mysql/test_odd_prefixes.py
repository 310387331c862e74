"""Names of schemas that look like placeholders, here and on the other databases."""

import asyncio
from pathlib import Path

import psycopg
import pymysql
import pytest

from laneway import AsyncQueue, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.url import connect_options

NAMES = ["a%sb", "$1", "a`b'%(c)s"]


@pytest.fixture(scope="module")
def url(mariadb: EmbeddedMariaDB) -> str:
    return mariadb.create_database("odd%snames")


@pytest.mark.parametrize("schema", NAMES)
def test_a_schema_that_looks_like_a_placeholder(url: str, schema: str) -> None:
    with Queue(url, schema=schema) as queue:
        use(queue)


@pytest.mark.repeats("tested with PyMySQL")
def test_a_schema_that_looks_like_a_placeholder_on_asyncmy(url: str) -> None:
    async def main() -> None:
        async with AsyncQueue(url, schema="b%sc") as queue:
            await queue.install()
            await queue.publish(1, key="k")
            (message,) = await queue.claim()
            await message.fail("no")
            assert len(await queue.dead_letters.list()) == 1
            await queue.stats()

    asyncio.run(main())


@pytest.mark.parametrize("schema", NAMES)
def test_a_schema_that_looks_like_a_placeholder_on_sqlite(tmp_path: Path, schema: str) -> None:
    with Queue(f"sqlite:///{tmp_path}/names.db", schema=schema) as queue:
        use(queue)


@pytest.mark.parametrize("schema", NAMES[:1])
def test_a_schema_that_looks_like_a_placeholder_on_postgresql(database: str, schema: str) -> None:
    with Queue(database, schema=schema) as queue:
        use(queue)
        with psycopg.connect(database) as connection:
            queue.publish(1, connection=connection)


def test_a_connection_of_the_caller(url: str) -> None:
    with Queue(url, schema="c%sd") as queue:
        queue.install()
        options = {**connect_options(url), "database": "odd%snames"}
        with pymysql.connect(**options) as connection:
            queue.publish(1, key="k", connection=connection)
            connection.commit()
        (message,) = queue.claim()
        with pymysql.connect(**options) as connection:
            message.complete(connection=connection)
            connection.commit()


def use(queue: Queue) -> None:
    queue.install()
    queue.publish(1, key="k")
    queue.schedule("daily", 1, every=60)
    queue.fire_schedules()
    (message,) = queue.claim()
    message.fail("no")
    queue.dead_letters.redrive(queue="default")
    queue.upkeep()
    for message in queue.claim(5):
        message.complete()
    queue.publish(2)
    assert queue.stats()
    assert list(queue.schedules.list())
    queue.diagnose()
