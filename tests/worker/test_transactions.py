"""Handlers in the worker's transaction: effects and completion commit together, or not at all."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Defer, Message, Throttled, Worker
from laneway.drivers.psycopg.aio import AsyncPsycopgRunner
from laneway.drivers.psycopg.sync import PsycopgRunner
from laneway.worker.execute import executor
from laneway.worker.run import runtime
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import outcomes

RETRY = Constant(every=0)


async def effects(place: Place, *, create: bool = False) -> list[int]:
    connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
    async with connection:
        if create:
            await connection.execute("drop table if exists effect")
            await connection.execute("create table effect (id int)")
        return [row[0] for row in await (await connection.execute("table effect")).fetchall()]


def again(attempt: int) -> object:
    """Fails once, goes on once, ends."""
    if attempt == 1:
        raise ValueError("after the effect")
    return Defer(state=1) if attempt == 2 else None


def with_psycopg(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage) -> object:
        await tx.execute("insert into effect values (%s)", [message.attempt])
        return again(message.attempt)


def with_asyncpg(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: asyncpg.Connection, message: AsyncMessage) -> object:
        await tx.execute("insert into effect values ($1)", message.attempt)
        return again(message.attempt)


def with_thread(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    def handle(payload: int, tx: psycopg.Connection, message: Message) -> object:
        tx.execute("insert into effect values (%s)", [message.attempt])
        return again(message.attempt)


WORLDS = {"psycopg": with_psycopg, "asyncpg": with_asyncpg, "thread": with_thread}


@pytest.mark.parametrize("world", WORLDS)
def test_effect_and_completion_are_one(place: Place, world: str) -> None:
    @run_async
    async def check() -> None:
        await effects(place, create=True)
        url = place.asyncpg_url if world == "asyncpg" else place.url
        async with AsyncQueue(url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            WORLDS[world](worker)
            published = await queue.publish(1)
            await worker.serve(until_empty=True)
            assert await outcomes(queue, published.id) == ["retried", "deferred", "completed"]
            assert await effects(place) == [2, 3]

    check()


@run_async
async def test_a_lost_lease_takes_the_effects_along(place: Place) -> None:
    await effects(place, create=True)
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        worker = Worker(queue, max_messages=1)

        @worker.default_handler
        async def handle(payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage) -> None:
            await tx.execute("insert into effect values (1)")
            # Somebody else settles it, as if our lease had run out.
            await queue.give_back([message])

        await queue.publish(1)
        await worker.serve()
        assert await effects(place) == []
        (stats,) = await queue.stats()
        assert stats.waiting == 1


@run_async
async def test_a_connection_of_another_driver_is_refused(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        worker = Worker(queue)

        @worker.default_handler(ack="reject")
        async def handle(payload: int, tx: asyncpg.Connection) -> None:
            raise AssertionError("not reached")

        await queue.publish(1)
        await worker.serve(until_empty=True)
        (letter,) = await queue.dead_letters.list()
        assert "the handler asks for a asyncpg" in str(letter.error)


def _slow(worker: Worker) -> None:
    @worker.handler("async", ack="reject")
    async def in_loop(seconds: float, tx: psycopg.AsyncConnection) -> None:
        await asyncio.sleep(seconds)

    @worker.handler("thread", ack="reject")
    def in_thread(seconds: float, tx: psycopg.Connection) -> None:
        time.sleep(seconds)


@pytest.mark.parametrize("world", ["async", "thread"])
def test_waiting_for_a_place_among_transactions_fails_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setattr(runtime, "_MAX_TRANSACTIONS", 1)
    for runner in (PsycopgRunner, AsyncPsycopgRunner):
        defaults = runner.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "wait", 1.0)

    @run_async
    async def check() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            _slow(worker)
            ids = [(await queue.publish(0.8, kind=world)).id for _ in range(4)]
            await worker.serve(until_empty=True)
            for id in ids:
                assert await outcomes(queue, id) == ["completed"]

    check()


@pytest.mark.parametrize("world", ["async", "thread"])
def test_without_a_connection_the_message_is_given_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    runner = PsycopgRunner if world == "thread" else AsyncPsycopgRunner
    begin, refusals = runner.transaction, [psycopg.OperationalError("too many connections")]

    def transaction(self: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return begin(self)

    monkeypatch.setattr(runner, "transaction", transaction)
    monkeypatch.setattr(executor, "_NO_TRANSACTION_DELAY", timedelta(0))

    @run_async
    async def check() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            _slow(worker)
            published = await queue.publish(0, kind=world)
            await worker.serve(until_empty=True)
            assert await outcomes(queue, published.id) == ["given_back", "completed"]

    check()


@run_async
async def test_a_throttled_handler_rolls_back(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        await effects(place, create=True)
        worker = Worker(queue)
        calls: list[int] = []

        @worker.default_handler()
        async def handle(payload: int, tx: psycopg.AsyncConnection) -> object:
            calls.append(payload)
            await tx.execute("insert into effect values (%s)", [len(calls)])
            return Throttled(retry_after=3600) if len(calls) == 1 else None

        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert await effects(place) == []
        await queue.channel("default").resume()
        await worker.serve(until_empty=True)
        assert await effects(place) == [2]
        assert (await outcomes(queue, published.id))[-1] == "completed"
