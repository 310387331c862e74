"""The clock that tests move: for every client and worker of the process, on each database."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Queue, Worker
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from laneway.testing import MovableClock
from laneway.testing.schema import EmptiedSchema, emptied_schema
from tests.client.worlds import run_async

DAY = timedelta(days=1)
COUNTED_TO = {
    "postgresql": "select noted_at, as_of, depth_at from laneway.counting",
    "mysql": "select seen_at, counted_at, noted from laneway_fold",
    "sqlite": "select noted_to, count_at from laneway_fold",
}


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL", "asyncpg", "MariaDB"])
def emptied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmptiedSchema]:
    if request.param == "SQLite":
        url = f"sqlite:///{tmp_path_factory.mktemp('kit')}/test.db?synchronous=normal"
    elif request.param == "MariaDB":
        mariadb: EmbeddedMariaDB = request.getfixturevalue("mariadb")
        url = mariadb.create_database("kit_test")
    else:
        server: EmbeddedPostgres = request.getfixturevalue("server")
        url = server.create_database(f"kit test {request.param}")
        if request.param == "asyncpg":
            url = url.replace("postgresql:", "postgresql+asyncpg:")
    with emptied_schema(url, "laneway") as schema:
        yield schema


@pytest.fixture
def queue(emptied: EmptiedSchema) -> Iterator[Queue]:
    emptied.empty()
    with Queue(emptied.url, schema=emptied.schema) as queue:
        yield queue


def test_days_pass_at_once(queue: Queue, laneway_clock: MovableClock) -> None:
    queue.publish("later", delay=3 * DAY)
    assert not queue.claim()
    laneway_clock.move(3 * DAY)
    (message,) = queue.claim()
    assert message.until - message.published_at >= 3 * DAY
    laneway_clock.move(60)
    assert not queue.claim(), "its lease has run out: it pauses after an attempt that was lost"
    laneway_clock.move(60)
    assert [one.attempt for one in queue.claim()] == [2]


def test_a_client_that_has_seen_the_future_works_in_the_next_test(
    queue: Queue, emptied: EmptiedSchema, laneway_clock: MovableClock
) -> None:
    queue.publish("later", delay=30 * DAY)
    for _ in range(3):  # until the client knows that the queue is sorted by kind
        assert not queue.claim(kinds=["order"])
    laneway_clock.move(30 * DAY)
    for _ in range(2):
        queue.upkeep()
        (message,) = queue.claim()
        message.fail("no")
        queue.publish("again")
        laneway_clock.move(61)
    queue.upkeep()
    laneway_clock.reset()
    emptied.empty()
    cursor = emptied._store.connection.cursor()
    cursor.execute(COUNTED_TO[emptied._store.address.dialect])
    assert not any(cursor.fetchone()), "nothing was counted in the future"
    assert not queue.stats() and not queue.dead_letters.list()
    queue.publish(1, kind="order")
    (message,) = queue.claim(kinds=["order"])
    message.complete()
    queue.publish("now")
    (message,) = queue.claim()
    message.give_back()
    laneway_clock.move(61)
    queue.upkeep()
    laneway_clock.move(61)
    queue.upkeep()
    (stats,) = queue.stats()
    assert (stats.waiting, stats.leased, stats.dead) == (1, 0, 0)
    minutes = queue.minutes(since=laneway_clock.now() - DAY, until=laneway_clock.now())
    assert sum(minute.published for minute in minutes) == 2
    assert max(minute.depth or 0 for minute in minutes) == 1
    (message,) = queue.claim()
    message.complete()


def test_time_is_real_again_after_the_test_before(queue: Queue) -> None:
    queue.publish("later", delay=DAY)
    assert not queue.claim()
    assert abs(queue.clock() - datetime.now(UTC)) < DAY / 2


@run_async
async def test_it_is_the_clock_of_async_clients_too(
    queue: Queue, emptied: EmptiedSchema, laneway_clock: MovableClock
) -> None:
    async with AsyncQueue(emptied.url, schema=emptied.schema) as client:
        await client.publish("later", delay=30 * DAY)
        assert not await client.claim()
        laneway_clock.move(30 * DAY)
        assert len(await client.claim()) == 1


@run_async
async def test_what_runs_keeps_its_lease_when_days_pass(
    queue: Queue, emptied: EmptiedSchema, laneway_clock: MovableClock
) -> None:
    worker, ticked, ends = Worker(queue), asyncio.Event(), asyncio.Event()

    @worker.handler("long")
    async def long(number: int) -> None:
        laneway_clock.move(DAY)
        await ends.wait()

    @worker.handler("tick")
    async def tick(number: int) -> None:
        ticked.set()

    async with AsyncQueue(emptied.url, schema=emptied.schema) as client, asyncio.timeout(60):
        await client.schedule("daily", 1, kind="tick", every=DAY)
        published = await client.publish(1, kind="long")
        working = asyncio.create_task(worker.serve())
        await ticked.wait()  # so upkeep, which comes before ticks, knows the time
        ends.set()
        worker.stop()
        await working
        assert published.id is not None
        history = await client.history(published.id)
        assert [entry.outcome for entry in history] == ["completed"]


@run_async
async def test_a_running_worker_wakes_up_for_what_became_due(
    queue: Queue,
    emptied: EmptiedSchema,
    laneway_clock: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message, a tick of a schedule, and a retry; by itself it would look in an hour (but on
    MariaDB, which does not notify: it polls)."""
    if not emptied.url.startswith("mysql"):
        monkeypatch.setattr("laneway.worker.run.idle._FIRST_POLL", 3600.0)
        monkeypatch.setattr("laneway.worker.run.idle._LONGEST_POLL", 3600.0)
    worker = Worker(queue)
    seen: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    @worker.handler("once", retry=Constant(every=3600))
    async def once(name: str, message: AsyncMessage) -> None:
        await seen.put((name, message.attempt))
        if name == "retried" and message.attempt == 1:
            raise ValueError("not yet")

    async with AsyncQueue(emptied.url, schema=emptied.schema) as client, asyncio.timeout(60):
        await client.publish("later", kind="once", delay=3 * DAY)
        await client.schedule("weekly", "tick", kind="once", every=7 * DAY)
        working = asyncio.create_task(worker.serve())
        laneway_clock.move(3 * DAY)
        assert await seen.get() == ("later", 1)
        laneway_clock.move(4 * DAY)
        assert await seen.get() == ("tick", 1)
        await client.publish("retried", kind="once")
        assert await seen.get() == ("retried", 1)
        while not await client.messages(state="scheduled"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        laneway_clock.move(3600)
        assert await seen.get() == ("retried", 2)
        worker.stop()
        await working
