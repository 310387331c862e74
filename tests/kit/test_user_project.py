"""The fixtures, as a project uses them that has Laneway and pytest installed: no conftest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres

SHOP = """
from laneway import AsyncMessage, Constant, Tasks

tasks = Tasks()


@tasks.task(retry=Constant(every=3600, attempts=3))
async def charge(order: int, message: AsyncMessage) -> None:
    if message.attempt < 3:
        raise ConnectionError("away")


@tasks.task
def remind(order: int) -> None: ...
"""

TESTS = """
import asyncio
from datetime import timedelta

import pytest
from shop import charge, remind, tasks

from laneway import AsyncQueue, Queue, Worker
from laneway.testing import assert_published, drain, drain_async, published

DAY = timedelta(days=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def worker(laneway_queue):
    tasks.bind(laneway_queue)
    worker = Worker(laneway_queue)
    worker.include(tasks)
    return worker


@pytest.mark.parametrize("time", range(2))
def test_it_is_empty_every_time(laneway_queue, time):
    assert not laneway_queue.messages() and not laneway_queue.dead_letters.list()
    assert not laneway_queue.schedules.list() and not laneway_queue.limits.list()
    assert not laneway_queue.channel("tenant").policy().concurrency
    laneway_queue.schedule("daily", 1, every=DAY)
    laneway_queue.limits["stripe"].set(concurrency=1)
    laneway_queue.channel("tenant").limit(concurrency=1)
    laneway_queue.publish(1, channel="tenant", key="once", limits=["stripe"])
    laneway_queue.publish(2, channel="tenant")
    assert len(laneway_queue.claim(10)) == 1
    (failed,) = laneway_queue.claim(queues=["other"]) or laneway_queue.claim() or [None]
    laneway_queue.publish(3, queue="other")
    laneway_queue.claim(queues=["other"])[0].fail("no")


def test_sync(laneway_queue, worker):
    charge.publish(1)
    remind.using(delay=DAY).publish(2)
    assert_published(charge, 1)
    ran = drain(worker, later=True, check=True)
    assert [(one.kind, one.outcome) for one in ran] == [
        ("charge", "retried"), ("charge", "retried"), ("charge", "completed"),
        ("remind", "completed"),
    ]
    assert not published(remind)


def test_the_clock_is_real_again(laneway_queue):
    laneway_queue.publish(1, delay=DAY / 2)
    assert not laneway_queue.claim()


def test_clock(laneway_queue, laneway_clock):
    laneway_queue.publish(1, delay=40 * DAY)
    laneway_clock.move(40 * DAY)
    assert [message.json() for message in laneway_queue.claim()] == [1]


@pytest.mark.anyio
async def test_async(laneway_async_queue, laneway_clock):
    tasks.bind(laneway_async_queue)
    worker = Worker(laneway_async_queue)
    worker.include(tasks)
    await remind.using(delay=3 * DAY).apublish(2)
    await laneway_async_queue.publish(3, kind="other")
    assert_published(remind, 2)
    assert_published(laneway_async_queue, kind="other", payload=3, count=1)
    assert not await laneway_async_queue.claim(kinds=["remind"])
    laneway_clock.move(3 * DAY)
    assert len(await drain_async(worker)) == 1


@pytest.mark.parametrize("time", range(2))
def test_async_in_a_loop_of_its_own(laneway_async_queue, time):
    async def use() -> None:
        assert not await laneway_async_queue.messages()
        await laneway_async_queue.publish(time)

    asyncio.run(use())

    async def use_again() -> None:
        (message,) = await laneway_async_queue.claim()
        assert message.json() == time

    asyncio.run(use_again())
"""
COUNT = 8


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\npythonpath = .\n")
    return tmp_path


def run_tests(project: Path, *options: str, **environment: str) -> str:
    """What pytest printed, in a process that knows nothing of this one's tests."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "LANEWAY"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=project,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stdout


def test_a_sqlite_file_needs_no_configuration(project: Path) -> None:
    printed = run_tests(project)
    assert f"{COUNT} passed" in printed, printed


@pytest.mark.parametrize("driver", ["", "+asyncpg"])
def test_the_applications_own_database_url(
    project: Path, server: EmbeddedPostgres, driver: str
) -> None:
    with (project / "pytest.ini").open("a") as ini:
        ini.write("laneway_url = $DATABASE_URL\n")
    url = server.create_database(f"shop_test{driver.replace('+', '_')}")
    own = url.replace("postgresql:", f"postgresql{driver}:")
    for _ in range(2):  # what the first run left is no obstacle to the second
        printed = run_tests(project, DATABASE_URL=own)
        assert f"{COUNT} passed" in printed, printed
    with Queue(url) as queue:
        assert queue.messages(), "it was this database"


def test_processes_of_xdist_do_not_meet(project: Path, server: EmbeddedPostgres) -> None:
    url = server.create_database("shop_test_xdist")
    printed = run_tests(project, "-n", "2", LANEWAY_TEST_URL=url)
    assert f"{COUNT} passed" in printed, printed
    for process in ("gw0", "gw1"):
        with Queue(url, schema=f"laneway_{process}") as queue:
            queue.schema_version()


def test_a_postgresql_server_for_the_run(project: Path) -> None:
    printed = run_tests(project, "-k", "clock", LANEWAY_TEST_URL="embedded")
    assert "2 passed" in printed, printed


def test_a_database_that_is_not_for_tests_is_left_alone(
    project: Path, server: EmbeddedPostgres
) -> None:
    url = server.create_database("latest_orders")
    with Queue(url) as queue:
        queue.install()
        queue.publish("of a customer")
        printed = run_tests(project, "-k", "clock", LANEWAY_TEST_URL=url)
        assert "2 errors" in printed, printed
        assert "tests would delete everything in the schema 'laneway'" in printed
        assert "set laneway_schema" in printed
        assert len(queue.messages()) == 1
        with (project / "pytest.ini").open("a") as ini:
            ini.write("laneway_schema = laneway_test\n")
        printed = run_tests(project, "-k", "clock", LANEWAY_TEST_URL=url)
        assert "2 passed" in printed, printed
        assert len(queue.messages()) == 1


def test_what_cannot_be_the_tests_database_is_refused(project: Path) -> None:
    printed = run_tests(project, "-k", "clock", LANEWAY_TEST_URL="sqlite://")
    assert "use a SQLite file" in printed
    printed = run_tests(project, "-k", "clock", "-o", "laneway_url=$SHOP_URL")
    assert "laneway_url is $SHOP_URL, which is not in the environment" in printed


def test_a_run_without_the_fixtures_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('laneway')}\n"
        "    assert ours == {'laneway', 'laneway.testing', 'laneway.testing.plugin'}\n"
    )
    printed = run_tests(tmp_path)
    assert "1 passed" in printed, printed
