"""Handlers that lock the row of their lease in a transaction: what that costs them, and nobody
else."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Message, Worker
from laneway.dev.embedded import EmbeddedMariaDB
from tests.client.worlds import run_async
from tests.model.mysql import connect as connect_mysql
from tests.place import Place
from tests.worker.test_worker import client, outcomes

MINUTE = timedelta(minutes=1)


def by_the_message(worker: Worker, place: Place, queue: AsyncQueue, seconds: float) -> None:
    @worker.handler("holds")
    async def holds(payload: int, message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(place.url) as mine:
            await message.extend(MINUTE, connection=mine)
            await asyncio.sleep(seconds)


def in_a_thread(worker: Worker, place: Place, queue: AsyncQueue, seconds: float) -> None:
    @worker.handler("holds")
    def holds(payload: int, message: Message) -> None:
        with psycopg.connect(place.url) as mine:
            message.extend(MINUTE, connection=mine)
            time.sleep(seconds)


def by_another_client(worker: Worker, place: Place, queue: AsyncQueue, seconds: float) -> None:
    """Of which the worker knows nothing."""

    @worker.handler("holds")
    async def holds(payload: int, message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(place.url) as mine:
            await queue.extend([message], MINUTE, connection=mine)
            await asyncio.sleep(seconds)


@pytest.mark.repeats("the first test here locks a lease too")
@pytest.mark.parametrize("hold", [by_the_message, in_a_thread, by_another_client])
def test_an_extension_in_an_open_transaction_costs_no_other_its_lease(
    place: Place, hold: Callable[..., None]
) -> None:
    @run_async
    async def check() -> None:
        async with client(place, lease=timedelta(seconds=1.5)) as queue:
            worker = Worker(queue)
            runs: Counter[str] = Counter()
            hold(worker, place, queue, 3.7)

            @worker.handler("slow")
            async def slow(payload: int, message: AsyncMessage) -> None:
                runs[str(message.id)] += 1
                await asyncio.sleep(3.4)

            ids = [(await queue.publish(1, kind=kind)).id for kind in ["holds", *["slow"] * 10]]
            await worker.serve(until_empty=True)
            assert set(runs.values()) == {1}
            for id in ids:
                assert await outcomes(queue, id) == ["completed"]

    check()


@run_async
async def test_a_rolled_back_completion_keeps_its_lease(place: Place) -> None:
    async with client(place, lease=timedelta(seconds=1)) as queue:
        worker = Worker(queue)
        runs = []

        @worker.default_handler
        async def handle(payload: int, message: AsyncMessage) -> None:
            runs.append(message.attempt)
            async with await psycopg.AsyncConnection.connect(place.url) as mine:
                await message.complete(connection=mine)
                await mine.rollback()
                await asyncio.sleep(3)
                await message.complete(connection=mine)

        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert runs == [1]
        assert await outcomes(queue, published.id) == ["completed"]


@run_async
async def test_work_goes_on_after_a_completion_was_committed(place: Place) -> None:
    """Nobody extends what has ended, and nobody takes its end for a loss."""
    async with client(place, lease=timedelta(seconds=1)) as queue:
        worker = Worker(queue)
        ended = []

        @worker.default_handler
        async def handle(payload: int, message: AsyncMessage) -> None:
            async with await psycopg.AsyncConnection.connect(place.url) as mine:
                await message.complete(connection=mine)
            await asyncio.sleep(2.5)
            ended.append(message.lost)

        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert ended == [False]
        assert await outcomes(queue, published.id) == ["completed"]


@pytest.mark.repeats("waits for locks of 12 s")
@run_async
async def test_a_locked_lease_does_not_hold_up_the_outcomes_of_others(place: Place) -> None:
    """Its time is up, and its outcome waits for its own transaction; others fail and end well at
    the same moment and after it."""
    async with client(place, lease=timedelta(seconds=2)) as queue:
        worker = Worker(queue)
        runs: Counter[int] = Counter()
        soon = Constant(every=0, attempts=2)

        @worker.handler("holds", timeout=1.5)
        def holds(payload: int, message: Message) -> None:
            with psycopg.connect(place.url) as mine:
                message.complete(connection=mine)
                time.sleep(9)

        @worker.handler("times out", timeout=1.5, retry=soon)
        async def times_out(payload: int, message: AsyncMessage) -> None:
            runs[message.id] += 1
            await asyncio.sleep(3 if message.attempt == 1 else 0)

        @worker.handler("quick")
        async def quick(payload: int, message: AsyncMessage) -> None:
            runs[message.id] += 1
            await asyncio.sleep(1.5)

        held = await queue.publish(1, kind="holds")
        timed = [await queue.publish(1, kind="times out") for _ in range(5)]
        ended = [await queue.publish(1, kind="quick") for _ in range(5)]
        later = [
            await queue.publish(1, kind="quick", delay=timedelta(seconds=second))
            for second in (1, 2, 3)
        ]
        serving = asyncio.create_task(worker.serve(until_empty=True))
        async with asyncio.timeout(8):
            for one in (*timed, *ended, *later):
                assert (await queue.wait(one.id or 0)).outcome == "completed"
        await asyncio.wait_for(serving, 30)
        for one in timed:
            assert await outcomes(queue, one.id) == ["retried", "completed"]
        for one in (*ended, *later):
            assert (await outcomes(queue, one.id), runs[one.id or 0]) == (["completed"], 1)
        assert "completed" in await outcomes(queue, held.id)


@pytest.mark.repeats("on PostgreSQL in the other tests here")
@run_async
async def test_on_mariadb_too(mariadb: EmbeddedMariaDB) -> None:
    url = mariadb.create_database("locked leases")
    async with AsyncQueue(url, lease=timedelta(seconds=3)) as queue:
        await queue.install()
        worker = Worker(queue)
        runs: Counter[int] = Counter()

        @worker.handler("holds")
        def holds(payload: int, message: Message) -> None:
            with connect_mysql(url) as mine:
                message.extend(MINUTE, connection=mine)
                time.sleep(7)
                mine.commit()

        @worker.handler("slow")
        async def slow(payload: int, message: AsyncMessage) -> None:
            runs[message.id] += 1
            await asyncio.sleep(6)

        published = [await queue.publish(1, kind=kind) for kind in ["holds", *["slow"] * 5]]
        await worker.serve(until_empty=True)
        assert set(runs.values()) == {1}
        for one in published:
            assert await outcomes(queue, one.id) == ["completed"]
