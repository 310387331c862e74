"""The database goes away and comes back; the listening connection dies in silence."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from laneway import AsyncQueue, Worker
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers import listener
from laneway.errors import ConnectionUnavailable
from tests.client.worlds import run_async
from tests.conftest import SETTINGS
from tests.place import Place
from tests.worker.test_worker import client, outcomes, until

BUSY = 15.0  # seconds that a busy machine may add


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """A stop leaves tasks behind that wait for a silent server. Python logs them when it collects
    them, and 3.11 fails if that is in the middle of a compilation."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def mortal() -> Iterator[EmbeddedPostgres]:
    """A server that may be killed."""
    settings = SETTINGS | {"fsync": True}
    with EmbeddedPostgres(version=18, settings=settings) as running:
        yield running


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_an_outage_is_ridden_out(mortal: EmbeddedPostgres, driver: str, how: str) -> None:
    @run_async
    async def check() -> None:
        url = mortal.create_database(f"outage {driver} {how}")
        if driver == "asyncpg":
            url = url.replace("postgresql://", "postgresql+asyncpg://")
        async with AsyncQueue(url, lease=timedelta(seconds=3)) as queue:
            await queue.install()
            await queue.configure(backoff_initial=timedelta(0))
            published = await queue.publish_many(range(3000))
            worker = Worker(queue, concurrency=20)
            runs: Counter[int] = Counter()

            @worker.default_handler
            async def handle(payload: int) -> None:
                runs[payload] += 1
                await asyncio.sleep(0.005)

            serving = asyncio.create_task(worker.serve())
            await until(lambda: len(runs) > 500, 60)
            if how == "kill":
                await asyncio.to_thread(mortal.kill)
            else:
                await asyncio.to_thread(mortal.stop, "immediate")
            await asyncio.sleep(2)
            during = len(runs)
            assert during < 3000, "it claims nothing while the database is away"
            await asyncio.to_thread(mortal.start)
            await until(lambda: len(runs) == 3000, 60)
            await until_empty(queue)
            worker.stop()
            await asyncio.wait_for(serving, 20)
            for one in published[::50]:
                assert (await outcomes(queue, one.id)).count("completed") == 1
            # Only what was under way when the server died may have run twice.
            assert sum(runs.values()) - 3000 <= 20 + 1000

    check()


async def until_empty(queue: AsyncQueue) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(ConnectionUnavailable):  # this client's own pool has to heal too
                if not await queue.stats():
                    return
            await asyncio.sleep(0.05)


@run_async
async def test_a_worker_that_starts_before_the_database_waits_for_it(place: Place) -> None:
    proxy = Proxy(place.url)
    async with client(place) as queue:
        await queue.publish(1)
    async with AsyncQueue(await proxy.start(), schema=place.schema) as queue:
        await proxy.close()
        worker = Worker(queue, max_messages=1)
        seen = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            seen.append(payload)

        serving = asyncio.create_task(worker.serve())
        await asyncio.sleep(0.5)
        assert not serving.done()
        await proxy.start()
        await asyncio.wait_for(serving, 30)
        await proxy.close()
        assert seen == [1]


@pytest.mark.repeats("outages in the other tests here, stops in test_shutdown")
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("when", ["from the start", "later"])
def test_a_stop_does_not_wait_for_a_database_that_is_silent(
    place: Place, driver: str, when: str
) -> None:
    @run_async
    async def check() -> None:
        async with client(place):  # the schema is there
            pass
        async with through_proxy(place, driver) as (proxy, proxied):
            worker = Worker(proxied, grace=timedelta(seconds=1))

            @worker.default_handler
            async def handle(payload: int) -> None: ...

            if when == "from the start":
                proxy.freeze()
            serving = asyncio.create_task(worker.serve())
            if when == "later":
                await until(lambda: proxy.listeners == 1)
                await asyncio.sleep(1.5)
                proxy.freeze()
            await asyncio.sleep(1.5)
            assert not serving.done()
            worker.stop()
            await asyncio.wait_for(serving, 20)

    check()


@pytest.mark.repeats("a cut connection in test_notifier")
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_listener_that_died_in_silence_is_found_and_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    monkeypatch.setattr(listener, "_PROBE_EVERY", 1.0)
    monkeypatch.setattr(listener, "PATIENCE", 1.0)

    @run_async
    async def check() -> None:
        async with through_proxy(place, driver) as (proxy, proxied), client(place) as queue:
            worker = Worker(proxied)
            seen: dict[int, float] = {}

            @worker.default_handler
            async def handle(payload: int) -> None:
                seen[payload] = time.monotonic()

            serving = asyncio.create_task(worker.serve())
            await until(lambda: proxy.listeners == 1)
            await asyncio.sleep(2.5)  # asleep, and the polls are rare by now
            took = [await pick_up(queue, seen, number) for number in range(10)]
            assert sorted(took)[5] < 0.5, f"notified: {took}"
            proxy.freeze_listeners()
            assert await pick_up(queue, seen, 100) < 1 + BUSY, "polling goes on"
            await until(lambda: proxy.listeners == 2, 30)
            await asyncio.sleep(2.5)
            took = [await pick_up(queue, seen, number) for number in range(200, 210)]
            assert sorted(took)[5] < 0.5, f"notified by another: {took}"
            worker.stop()
            await asyncio.wait_for(serving, 20)

    check()


async def pick_up(queue: AsyncQueue, seen: dict[int, float], number: int) -> float:
    """How long a lone message waits, published while the worker sleeps."""
    await asyncio.sleep(0.3)
    begun = time.monotonic()
    await queue.publish(number)
    await until(lambda: number in seen)
    return seen[number] - begun


@asynccontextmanager
async def through_proxy(place: Place, driver: str) -> AsyncIterator[tuple["Proxy", AsyncQueue]]:
    proxy = Proxy(place.asyncpg_url if driver == "asyncpg" else place.url)
    async with AsyncQueue(await proxy.start(), schema=place.schema) as queue:
        yield proxy, queue
    await proxy.close()


class Proxy:
    """Forwards to the server; connections that LISTEN, or all, can be frozen: open, and silent."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._target = urlsplit(url)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._frozen: set[int] = set()
        self._all_frozen = False
        self._listening: set[int] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.listeners = 0

    async def start(self) -> str:
        """The URL that leads through here; after the first time on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self._url.replace(f":{self._target.port}/", f":{self._port}/")

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0.05)

    def freeze_listeners(self) -> None:
        self._frozen |= self._listening

    def freeze(self) -> None:
        """Those that are there, and those to come."""
        self._all_frozen = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers += [writer, there[1]]
        number = len(self._writers)
        await asyncio.gather(
            self._copy(reader, there[1], number), self._copy(there[0], writer, number)
        )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if b"LISTEN" in data and number not in self._listening:
                    self._listening.add(number)
                    self.listeners += 1
                if number in self._frozen or self._all_frozen:
                    continue
                writer.write(data)
                await writer.drain()
        if number not in self._frozen:
            writer.close()
