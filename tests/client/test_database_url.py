"""The application's own DATABASE_URL is what every part takes, whatever driver it names."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.client import Shards
from laneway.dev.chaos.targets import existing_target
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.database_url import SCHEMES, database_url
from laneway.errors import InvalidOption
from laneway.stores import open_store, store_address
from laneway.testing import assert_published, drain, drain_async, published
from laneway.worker.tasks.clients import twin
from tests.place import Place


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("postgres://u:p@h/d", "postgresql://u:p@h/d"),
        ("POSTGRES://h/d", "postgresql://h/d"),
        ("postgresql+psycopg://h/d?sslmode=require", "postgresql://h/d?sslmode=require"),
        ("postgresql+psycopg2://h/d?options=-c+x%3D1", "postgresql://h/d?options=-c%20x%3D1"),
        ("postgresql://h/d?application_name=a+b", "postgresql://h/d?application_name=a+b"),
        ("postgresql+psycopg://h/d?prepare_threshold=0", "postgresql://h/d"),
        ("postgres+asyncpg://h/d", "postgresql+asyncpg://h/d"),
        ("postgresql+asyncpg://h/d?ssl=require", "postgresql+asyncpg://h/d?sslmode=require"),
        ("postgresql+asyncpg://h/d?timeout=5", "postgresql+asyncpg://h/d?connect_timeout=5"),
        ("postgresql+asyncpg://h/d?prepared_statement_cache_size=0", "postgresql+asyncpg://h/d"),
        (
            "postgresql+asyncpg://u@/d?host=a:1&host=b:2",
            "postgresql+asyncpg://u@/d?host=a%2Cb&port=1%2C2",
        ),
        ("postgresql:///d?host=%2Frun%2Fx", "postgresql:///d?host=%2Frun%2Fx"),
        ("mysql+pymysql://u:p@h/d?charset=utf8mb4&read_timeout=3", "mysql://u:p@h/d"),
        ("mysql+aiomysql://h/d", "mysql://h/d"),
        ("mysql+asyncmy://h/d?unix_socket=%2Fx", "mysql://h/d?unix_socket=%2Fx"),
        ("mariadb+pymysql://h/d", "mysql://h/d"),
        ("mysql+mysqldb://h/d?ssl_check_hostname=false", "mysql://h/d?ssl_mode=VERIFY_CA"),
        ("sqlite+aiosqlite:///x.db", "sqlite:///x.db"),
        ("sqlite+pysqlite:////x.db?check_same_thread=false", "sqlite:////x.db"),
        ("sqlite+aiosqlite:///file:/x.db?mode=rwc&uri=true", "sqlite:////x.db"),
        ("sqlite:///x.db?synchronous=normal", "sqlite:///x.db?synchronous=normal"),
    ],
)
def test_the_same_address_in_our_words(theirs: str, ours: str) -> None:
    assert database_url(theirs) == ours
    assert database_url(ours) == ours, "read once more, it stays the same"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql+asyncpg://u:secret@h/d?sslmod=require", "'sslmod' in .*: write sslmode"),
        ("postgresql+asyncpg://u:secret@h/d?channel_binding=require", "'channel_binding'"),
        ("postgresql+asyncpg://u:secret@h/d?jit=off", "'jit' in .*: leave it out, or use one of"),
        ("postgresql://u:secret@h/d?schema=public", "'schema' in .*: leave it out"),
        ("postgresql://u:1?secret=x@h/d", "cannot be read"),
        ("mysql+pymysql://u:secret@h/d?ssl_capath=/x", "'ssl_capath' in .*: write ssl_ca"),
        ("mysql+mysqldb://u:secret@h/d?read_default_file=/x", "'read_default_file'"),
        ("sqlite+aiosqlite:///file:x?mode=memory&cache=shared&uri=true", "in the application's"),
        ("sqlite:///x.db?mode=ro", "'mode' in .*: leave it out, or use one of synchronous"),
        ("postgresql+asyncpg://u:***@h/d", r"use .*url_of\(engine\)"),
        ("postgresql+nothing://u:secret@h/d", "did you mean postgresql://"),
    ],
)
def test_options_that_mean_nothing_here(url: str, text: str) -> None:
    for client in (Queue, AsyncQueue):
        with pytest.raises(InvalidOption, match=text) as error:
            client(url)
        assert "secret" not in str(error.value)


def test_a_url_that_is_no_text() -> None:
    """Settings' own types, and SQLAlchemy's."""
    with pytest.raises(InvalidOption, match=r"such as str\(settings"):
        Queue(urlsplit("postgresql://h/d"))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"for a file write 'sqlite:////x\.db'"):
        Queue(Path("/x.db"))  # type: ignore[arg-type]


POSTGRESQL = [name for ours in ("postgresql", "postgresql+asyncpg") for name in SCHEMES[ours]]


@pytest.mark.parametrize("scheme", POSTGRESQL)
def test_every_name_of_postgresql_works(place: Place, scheme: str) -> None:
    url = place.url.replace("postgresql", scheme)

    async def both() -> None:
        with Queue(url, schema=place.schema) as queue:
            queue.install()
            await asyncio.to_thread(queue.publish, "sync")
        async with AsyncQueue(url, schema=place.schema) as aqueue:
            await aqueue.publish("asyncio")
            assert [m.text() for m in await aqueue.claim(9)] == ["sync", "asyncio"]

    asyncio.run(both())


@pytest.mark.parametrize("driver", ["pymysql", "aiomysql", "asyncmy", "mysqldb"])
def test_every_name_of_mysql_works(mariadb: EmbeddedMariaDB, driver: str) -> None:
    url = mariadb.create_database(f"url_{driver}").replace("mysql:", f"mysql+{driver}:")

    async def both() -> None:
        with Queue(f"{url}?charset=utf8mb4") as queue:
            queue.install()
            await asyncio.to_thread(queue.publish, "sync")
        async with AsyncQueue(url) as aqueue:
            assert [m.text() for m in await aqueue.claim(9)] == ["sync"]

    asyncio.run(both())


@pytest.mark.parametrize(
    "options", ["ssl=prefer", "connect_timeout=7", "timeout=7", "application_name=shop"]
)
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_options_reach_the_driver_or_are_its_own(place: Place, driver: str, options: str) -> None:
    if driver == "psycopg":
        options = options.replace("ssl=", "sslmode=").replace("timeout", "connect_timeout")
        options = options.replace("connect_connect", "connect")
    url = f"{place.url.replace('postgresql', f'postgresql+{driver}')}?{options}"

    async def run() -> None:
        async with AsyncQueue(url, schema=place.schema) as queue:
            await queue.install()
            await queue.publish(1)
            async with queue.database._runner.transaction() as connection:  # type: ignore[attr-defined]
                sql = "show application_name"
                if driver == "asyncpg":
                    name = await connection.fetchval(sql)
                else:
                    (name,) = await (await connection.execute(sql)).fetchone()
        assert name == ("shop" if "application_name" in options else "")
        with Queue(url, schema=place.schema) as queue:
            assert queue.messages()

    asyncio.run(run())


def test_the_test_kit_and_a_twin_of_an_asyncpg_client(place: Place) -> None:
    queue = AsyncQueue(place.asyncpg_url, schema=place.schema)
    worker = Worker(queue)
    done = []

    @worker.task
    async def receipt(order: int) -> None:
        done.append(order)

    async def go() -> None:
        async with queue:
            await queue.install()
            await receipt.apublish(7)
            assert len(published(receipt, 7)) == len(assert_published(receipt, 7)) == 1
            await drain_async(worker)
            with twin(Queue, queue) as beside:
                assert beside.messages() == []

    asyncio.run(go())
    with Queue(place.asyncpg_url, schema=place.schema) as same:
        same_worker = Worker(same)
        same_worker.handler("receipt")(lambda payload: done.append(payload["order"]))
        same.publish({"order": 8}, kind="receipt")
        assert_published(same, kind="receipt", count=1)
        drain(same_worker)
    assert done == [7, 8]


def test_one_database_under_two_drivers_is_one_place(place: Place) -> None:
    one = Queue(place.url, schema=place.schema)
    other = Queue(place.asyncpg_url, schema=place.schema)
    with pytest.raises(InvalidOption, match="two names for one database"):
        Shards({"a": one, "b": other})


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_every_command_takes_it(place: Place, driver: str, tmp_path: Path) -> None:
    url = place.url.replace("postgresql", f"postgresql+{driver}")
    environment = {**os.environ, "DATABASE_URL": f"{url}?prepared_statement_cache_size=0"}
    if driver == "psycopg":
        environment["DATABASE_URL"] = f"{url}?prepare_threshold=0"

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "laneway.cli", *words, "--schema", place.schema],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        # Of doctor: this server does not wait for its disk.
        codes = (0, 1, 3) if words == ("doctor",) else (0,)
        assert done.returncode in codes, (words, done.stdout, done.stderr)
        return done.stdout

    run("install")
    run("publish", '{"id": 1}')
    assert "default" in run("stats")
    assert "ok    pooler: " in run("doctor")
    assert "create schema" in run("sql")


def test_what_is_not_a_client_takes_it(place: Place) -> None:
    """The connections of Spark and the lake, and chaos."""
    address = store_address(f"{place.asyncpg_url}?ssl=prefer", place.schema)
    assert (address.dialect, address.url) == ("postgresql", f"{place.url}?sslmode=prefer")
    with open_store(address, "laneway.lake") as store:
        assert store.connection.execute("select 1").fetchone() == (1,)
    assert existing_target(place.asyncpg_url).engine == "postgresql"
    assert existing_target("mysql+aiomysql://h/d").engine == "mariadb"
