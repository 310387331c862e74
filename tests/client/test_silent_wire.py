"""A wire that swallows what is sent, or what comes back, and stays open."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from itertools import count
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.dev.chaos.proxy import Cut, Proxy
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import (
    ConnectionUnavailable,
    DatabaseFailed,
    InvalidTime,
    OutcomeUnknown,
)
from tests.client.worlds import run_async
from tests.conftest import SETTINGS
from tests.frozen import frozen
from tests.worker.test_worker import until

DRIVERS = {
    "psycopg": ("postgresql", False),
    "psycopg async": ("postgresql", True),
    "asyncpg": ("postgresql+asyncpg", True),
    "pymysql": ("mysql", False),
    "asyncmy": ("mysql", True),
}
ASYNC = [name for name, (_, is_async) in DRIVERS.items() if is_async]
SILENT: tuple[Cut, ...] = ("silent", "sent, then silent")
SHORT = 0.5  # seconds
HANGS = 120.0  # seconds: before, it was minutes on any machine

_numbers = count(1)


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def direct(driver: str, request: pytest.FixtureRequest) -> str:
    """The URL of a new database, without anything between."""
    mysql = DRIVERS[driver][0] == "mysql"
    server = request.getfixturevalue("mariadb" if mysql else "server")
    url: str = server.create_database(f"silent_{next(_numbers)}")
    with Queue(url) as queue:
        queue.install()
    return url


@pytest.fixture
def proxy(direct: str) -> Iterator[Proxy]:
    port = urlsplit(direct).port
    assert port is not None
    with closing(Proxy(port)) as proxy:
        yield proxy


def through(proxy: Proxy, direct: str, driver: str, name: str = "client") -> str:
    parts = urlsplit(direct)
    netloc = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.open(name)}"
    return urlunsplit(parts._replace(scheme=DRIVERS[driver][0], netloc=netloc))


@asynccontextmanager
async def opened(url: str, driver: str, seconds: float = SHORT) -> Any:
    """A client as an async one: what it is called with is awaited by the tests."""
    if DRIVERS[driver][1]:
        async with AsyncQueue(url, call_timeout=seconds, upkeep_every=None) as queue:
            yield queue
    else:
        with Queue(url, call_timeout=seconds, upkeep_every=None) as queue:
            yield _Threaded(queue)


class _Threaded:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return lambda *args, **kwargs: asyncio.to_thread(
            getattr(self._queue, name), *args, **kwargs
        )


def waiting(direct: str) -> int:
    with Queue(direct) as queue:
        return sum(stats.waiting for stats in queue.stats())


@pytest.mark.parametrize("how", SILENT)
def test_a_publish_says_what_it_knows_at_every_step(
    proxy: Proxy, direct: str, driver: str, how: Cut
) -> None:
    """However far it came: it says that it is done, that nothing happened, or that it is unknown;
    and nothing else holds."""

    @run_async
    async def check() -> None:
        async with opened(through(proxy, direct, driver), driver) as queue:
            unknown = 0
            for step in range(20):
                with suppress(OutcomeUnknown):  # a slow machine
                    await asyncio.wait_for(queue.publish("connected"), HANGS)
                before = waiting(direct)
                proxy.cut("client", how, skipped=step)
                try:
                    await asyncio.wait_for(queue.publish(step), HANGS)
                    expected = {before + 1}
                except OutcomeUnknown:
                    unknown += 1
                    expected = {before, before + 1}
                except ConnectionUnavailable:
                    expected = {before}
                assert waiting(direct) in expected
                port = proxy._ports["client"]
                if port.cut is not None:  # it has fewer steps
                    proxy.cut("client", None)
                    break
            else:
                pytest.fail("a publish of one message has no 20 steps")
            assert unknown, "the commit is a step as well"

    check()


@pytest.mark.parametrize("how", SILENT)
def test_what_only_reads_is_asked_again(proxy: Proxy, direct: str, driver: str, how: Cut) -> None:
    @run_async
    async def check() -> None:
        async with opened(through(proxy, direct, driver), driver, 3.0) as queue:
            await queue.publish(1)
            proxy.cut("client", how)
            stats = await asyncio.wait_for(queue.stats(), HANGS)
            assert [one.waiting for one in stats] == [1]

    check()


def test_a_claim_whose_answer_was_lost_is_not_the_end(
    proxy: Proxy, direct: str, driver: str
) -> None:
    @run_async
    async def check() -> None:
        async with opened(through(proxy, direct, driver), driver, 2.0) as queue:
            await queue.publish_many([1, 2, 3])
            assert list(await queue.claim(1))
            proxy.cut("client", "sent, then silent")
            if DRIVERS[driver][0] == "mysql":  # it was rolled back, and is done again
                assert list(await asyncio.wait_for(queue.claim(1), HANGS))
            else:
                with pytest.raises(OutcomeUnknown):
                    await asyncio.wait_for(queue.claim(1), HANGS)
            assert list(await asyncio.wait_for(queue.claim(1), HANGS))

    check()


@pytest.mark.repeats("every call in the tests above")
@pytest.mark.parametrize("driver", ASYNC)
def test_a_worker_goes_on_when_its_wires_fall_silent(
    proxy: Proxy, direct: str, driver: str
) -> None:
    @run_async
    async def check() -> None:
        url = through(proxy, direct, driver)
        async with AsyncQueue(url, call_timeout=2) as proxied, AsyncQueue(direct) as queue:
            worker = Worker(proxied, lease=timedelta(seconds=5))
            seen = []

            @worker.default_handler
            async def handle(payload: int) -> None:
                seen.append(payload)

            serving = asyncio.create_task(worker.serve())
            await queue.publish(1)
            await until(lambda: seen == [1], 60)
            for number in range(2, 5):
                proxy.silence("client")
                await queue.publish(number)
                await until(lambda number=number: number in seen, HANGS)  # type: ignore[misc]
            worker.stop()
            await asyncio.wait_for(serving, HANGS)

    check()


@pytest.fixture(scope="module")
def stoppable() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=18, settings=SETTINGS) as server:
        yield server


@pytest.mark.repeats("a silent server is a silent wire")
@pytest.mark.parametrize("driver", ["psycopg", "psycopg async", "asyncpg"])
def test_a_frozen_server_does_not_hold_a_call(stoppable: EmbeddedPostgres, driver: str) -> None:
    direct = stoppable.create_database(f"frozen {driver}")
    url = direct.replace("postgresql:", DRIVERS[driver][0] + ":")

    @run_async
    async def check() -> None:
        with Queue(direct) as queue:
            queue.install()
        async with opened(url, driver, 2.0) as queue:
            await queue.publish(1)
            with frozen(stoppable):
                with pytest.raises(OutcomeUnknown, match="nothing came back within 2 s"):
                    await asyncio.wait_for(queue.publish(2), HANGS)
                with pytest.raises(ConnectionUnavailable):
                    await asyncio.wait_for(queue.publish(3), HANGS)
        async with opened(url, driver, 20.0) as queue:
            await queue.publish(4)

    check()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_wait_for_a_lock_ends_with_the_servers_words(direct: str, driver: str) -> None:
    """Long before the call's own deadline, so that it is known that nothing was written."""

    @run_async
    async def check() -> None:
        url = direct.replace("postgresql:", "postgresql+asyncpg:")
        async with AsyncQueue(url if driver == "asyncpg" else direct, call_timeout=4) as queue:
            with psycopg.connect(direct) as holder, Queue(direct) as other:
                other.publish(1, key="k", connection=holder)
                with pytest.raises(DatabaseFailed, match="lock timeout"):
                    await queue.publish(2, key="k")

    check()


def test_the_option_is_checked() -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(InvalidTime):
            Queue("postgresql://localhost/nowhere", call_timeout=wrong)
