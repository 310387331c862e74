"""Waiting: no busy loops, nothing written by an idle worker, no scan starved by notifications."""

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from laneway import AsyncMessage, Worker
from laneway.model import ClaimStatus
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, until


class Claims:
    """An observer that counts claims by their status."""

    def __init__(self) -> None:
        self.statuses: list[ClaimStatus] = []

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        self.statuses.append(status)

    def ended(self, job: Any, outcome: Any, seconds: float) -> None: ...

    def lost(self, job: Any) -> None: ...

    def settled(self, job: Any, result: Any) -> None: ...


def serving(worker: Worker) -> asyncio.Task[None]:
    return asyncio.create_task(worker.serve())


async def transactions(place: Place) -> int:
    """How many numbers for writing transactions the server has given out."""
    connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
    async with connection:
        cursor = await connection.execute(
            "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def no_autovacuum(place: Place) -> Iterator[None]:
    """Those of the server's own transactions that write most."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("alter system set autovacuum = off")
        connection.execute("select pg_reload_conf()")
        yield
        connection.execute("alter system reset autovacuum")
        connection.execute("select pg_reload_conf()")


@pytest.mark.usefixtures("no_autovacuum")
@run_async
async def test_an_idle_worker_polls_rarely_and_writes_nothing(place: Place) -> None:
    async with client(place) as queue:
        claims = Claims()
        worker = Worker(queue, observers=[claims])
        worker.default_handler(lambda payload: None)
        running = serving(worker)
        await asyncio.sleep(2.5)  # it has settled down
        written: list[int] = []
        while 0 not in written:  # what the server has begun may write in one of these times
            assert len(written) < 5, written
            before, seen = await transactions(place), len(claims.statuses)
            await asyncio.sleep(4)
            # Every 10 seconds it says that it is alive.
            written.append(await transactions(place) - before)
            assert 3 <= len(claims.statuses) - seen <= 12
        worker.stop()
        await asyncio.wait_for(running, 20)


@run_async
async def test_a_blocked_worker_does_not_spin(place: Place) -> None:
    async with client(place) as queue:
        await queue.channel("one").limit(concurrency=1)
        await queue.publish_many(range(3), channel="one")
        (held,) = await queue.claim()
        claims = Claims()
        worker = Worker(queue, observers=[claims])
        done = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            done.append(payload)

        running = serving(worker)
        await asyncio.sleep(3)
        assert set(claims.statuses) == {ClaimStatus.BLOCKED}
        assert len(claims.statuses) < 25
        begun = time.monotonic()
        await held.complete()
        await until(lambda: len(done) == 2)
        assert time.monotonic() - begun < 3
        worker.stop()
        await asyncio.wait_for(running, 20)


@run_async
async def test_a_stream_of_rings_starves_nothing_and_sets_no_pace(place: Place) -> None:
    async with client(place) as queue:
        await queue.channel("paused").pause()
        claims = Claims()
        worker = Worker(queue, observers=[claims])
        done: list[float] = []

        @worker.default_handler
        async def handle(payload: int, message: AsyncMessage) -> None:
            done.append(time.monotonic())

        running = serving(worker)
        await asyncio.sleep(1)
        due = time.monotonic() + 1.5
        await queue.publish(0, delay=timedelta(seconds=1.5))
        seen, end, rung = len(claims.statuses), time.monotonic() + 3, 0
        while time.monotonic() < end:
            await queue.publish(1, channel="paused")
            rung += 1
        assert len(done) == 1, "the due time was kept in the middle of the stream"
        assert done[0] - due < 1.5
        assert len(claims.statuses) - seen < 3 * 60 + 50
        worker.stop()
        await asyncio.wait_for(running, 20)


@run_async
async def test_a_busy_worker_is_not_rung_for(place: Place) -> None:
    """Ringing costs publishers, so who finds work anyway takes itself off the list."""
    async with client(place) as queue:
        worker = Worker(queue, concurrency=5)

        @worker.default_handler
        async def handle(payload: int) -> None:
            await asyncio.sleep(0.002)

        async def sleepers() -> int:
            connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
            async with connection:
                table = psycopg.sql.Identifier(place.schema, "sleeper")
                cursor = await connection.execute(
                    psycopg.sql.SQL("select count(*) from {}").format(table)
                )
                row = await cursor.fetchone()
            assert row is not None
            return int(row[0])

        running = serving(worker)
        await asyncio.sleep(1.5)
        assert await sleepers() == 1
        await queue.publish_many(range(5000))
        await asyncio.sleep(0.5)
        assert await queue.stats(), "still at it"
        assert await sleepers() == 0
        worker.stop()
        await asyncio.wait_for(running, 20)
        assert await sleepers() == 0


@run_async
async def test_a_cancelled_serve_gives_back(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=2)
        started = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            started.append(payload)
            await asyncio.sleep(30)

        await queue.publish_many(range(4))
        running = serving(worker)
        await until(lambda: len(started) == 2)
        running.cancel()
        await asyncio.wait([running], timeout=20)
        assert running.cancelled()
        (stats,) = await queue.stats()
        assert (stats.waiting, stats.leased) == (4, 0)


@run_async
async def test_threads_that_overstay_give_their_places_back(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1, max_messages=2)
        ended = []

        @worker.handler("slow", timeout=0.1, ack="reject")
        def slow(payload: int) -> None:
            time.sleep(1)
            ended.append("slow")

        @worker.handler("quick")
        def quick(payload: int) -> None:
            ended.append("quick")

        await queue.publish(1, kind="slow")
        await queue.publish(1, kind="quick")
        await asyncio.wait_for(worker.serve(), 30)
        assert ended == ["slow", "quick"], "never more than one at a time"
